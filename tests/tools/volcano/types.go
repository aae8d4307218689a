// Package volcano pins the types from which Volcano's own build generates the CRD of its PodGroup, and the generator.
package volcano

import _ "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
