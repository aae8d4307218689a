// Does to a workflow what `argo retry` and `argo resubmit` do, by the functions of Argo that they call: reads the
// workflow as JSON, and writes the changed or the new one, and the pods that are to be deleted before. The command
// `argo` itself can't be built from the published module, which lacks its user interface.
//
//	argo-rerun retry|resubmit [SELECTOR [NAME=VALUE]...]
//
// A selector is that of `argo retry --restart-successful --node-field-selector`; "" is none.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	wfv1 "github.com/argoproj/argo-workflows/v3/pkg/apis/workflow/v1alpha1"
	"github.com/argoproj/argo-workflows/v3/workflow/util"
)

type result struct {
	Workflow *wfv1.Workflow `json:"workflow"`
	Pods     []string       `json:"pods"`
}

func rerun(how string, workflow *wfv1.Workflow, selector string, parameters []string) (result, error) {
	if how == "retry" {
		retried, pods, err := util.FormulateRetryWorkflow(context.Background(), workflow, selector != "", selector, parameters)
		return result{retried, pods}, err
	}
	again, err := util.FormulateResubmitWorkflow(context.Background(), workflow, false, parameters)
	return result{again, nil}, err
}

func main() {
	workflow := &wfv1.Workflow{}
	if err := json.NewDecoder(os.Stdin).Decode(workflow); err != nil {
		log.Fatal(err)
	}
	selector, parameters := "", []string{}
	if len(os.Args) > 2 {
		selector, parameters = os.Args[2], os.Args[3:]
	}
	done, err := rerun(os.Args[1], workflow, selector, parameters)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(done); err != nil {
		log.Fatal(err)
	}
}
