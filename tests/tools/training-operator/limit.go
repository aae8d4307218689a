// Ours, in addition to the released source: where TRAINING_OPERATOR_NO_LIMIT is set, the operator sends requests as fast
// as the API server answers. The release has no flag for its client's limit of 20 requests a second.

package cert

import (
	"os"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

func init() {
	limited := ctrl.GetConfigOrDie
	if os.Getenv("TRAINING_OPERATOR_NO_LIMIT") != "" {
		ctrl.GetConfigOrDie = func() *rest.Config {
			config := limited()
			config.QPS = -1
			return config
		}
	}
}
