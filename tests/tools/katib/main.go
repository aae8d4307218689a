// Says how Katib reads the status of a trial's resource, as GetDeployedJobStatus of its pkg/controller.v1beta1/trial/util
// does: each line of the input is JSON, {"success": GJSON, "failure": GJSON, "object": {...}}, and each line of the output
// {"condition": "Succeeded", "Failed" or "Running", "reason": TEXT, "message": TEXT}.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/tidwall/gjson"
)

type answer struct {
	Condition string `json:"condition"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

func main() {
	questions, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for questions.More() {
		var asked struct {
			Success, Failure string
			Object           json.RawMessage
		}
		if err := questions.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		said := answer{Condition: "Running"}
		for _, each := range [][2]string{{"Failed", asked.Failure}, {"Succeeded", asked.Success}} {
			found := gjson.Get(string(asked.Object), each[1])
			if found.IsArray() && len(found.Array()) > 0 {
				found = found.Array()[0]
			}
			if found.IsObject() {
				if err := json.Unmarshal([]byte(found.String()), &said); err != nil {
					log.Fatal(err)
				}
				said.Condition = each[0]
				break
			}
		}
		if err := answers.Encode(said); err != nil {
			log.Fatal(err)
		}
	}
}
