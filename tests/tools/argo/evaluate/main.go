// Evaluates expressions as the workflow-controller does those of a template's outputs: each line of the input is JSON,
// {"expressions": {NAME: EXPRESSION}, "scope": {NAME: TEXT}, "outputs": {PREFIX: {NAME: [TEXT, ...]}}}, and each line of
// the output {"values": {NAME: VALUE}, "errors": {NAME: TEXT}}. Outputs of a loop are gathered by Argo's own function.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	_ "unsafe"

	"github.com/argoproj/argo-workflows/v3/util/expr/env"
	_ "github.com/argoproj/argo-workflows/v3/workflow/controller"
	"github.com/expr-lang/expr"
)

//go:linkname aggregatedJSONValueList github.com/argoproj/argo-workflows/v3/workflow/controller.aggregatedJSONValueList
func aggregatedJSONValueList(values []string) (string, error)

type question struct {
	Expressions map[string]string              `json:"expressions"`
	Scope       map[string]interface{}         `json:"scope"`
	Outputs     map[string]map[string][]string `json:"outputs"`
}

type answer struct {
	Values map[string]interface{} `json:"values"`
	Errors map[string]string      `json:"errors"`
}

func answered(asked question) answer {
	scope := asked.Scope
	for prefix, lists := range asked.Outputs {
		for name, values := range lists {
			gathered, err := aggregatedJSONValueList(values)
			if err != nil {
				log.Fatal(err)
			}
			scope[prefix+"."+name] = gathered
		}
	}
	said := answer{map[string]interface{}{}, map[string]string{}}
	for name, source := range asked.Expressions {
		functions := env.GetFuncMap(scope)
		program, err := expr.Compile(source, expr.Env(functions))
		if err != nil {
			said.Errors[name] = err.Error()
			continue
		}
		value, err := expr.Run(program, functions)
		if err != nil {
			said.Errors[name] = err.Error()
			continue
		}
		said.Values[name] = value
	}
	return said
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(answered(asked)); err != nil {
			log.Fatal(err)
		}
	}
}
