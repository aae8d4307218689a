// Does what a sensor of Argo Events does once its dependencies are met, by its own code: reads {"sensor": SENSOR,
// "data": {DEPENDENCY: DATA}} as JSON, validates the sensor, and writes the object of each trigger as a line of JSON.
// With KUBECONFIG it creates the objects. The events' way to a sensor, by sources and a bus, is left out.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/argoproj/argo-events/pkg/apis/events/v1alpha1"
	sensors "github.com/argoproj/argo-events/pkg/reconciler/sensor"
	"github.com/argoproj/argo-events/pkg/sensors/triggers"
	standard "github.com/argoproj/argo-events/pkg/sensors/triggers/standard-k8s"
	"go.uber.org/zap"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

type question struct {
	Sensor v1alpha1.Sensor            `json:"sensor"`
	Data   map[string]json.RawMessage `json:"data"`
}

func events(data map[string]json.RawMessage) map[string]*v1alpha1.Event {
	made := map[string]*v1alpha1.Event{}
	for dependency, content := range data {
		context := &v1alpha1.EventContext{DataContentType: v1alpha1.MediaTypeJSON}
		made[dependency] = &v1alpha1.Event{Context: context, Data: content}
	}
	return made
}

func triggered(asked question, trigger v1alpha1.Trigger, client dynamic.Interface) (interface{}, error) {
	given := events(asked.Data)
	if err := triggers.ApplyTemplateParameters(given, &trigger); err != nil {
		return nil, err
	}
	made := standard.NewStandardK8sTrigger(nil, client, &asked.Sensor, &trigger, zap.NewNop().Sugar())
	found, err := triggers.FetchKubernetesResource(trigger.Template.K8s.Source)
	if err != nil {
		return nil, err
	}
	filled, err := made.ApplyResourceParameters(given, found)
	if err != nil || client == nil {
		return filled, err
	}
	return made.Execute(context.Background(), given, filled)
}

func main() {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatal(err)
	}
	bus := &v1alpha1.EventBus{Spec: v1alpha1.EventBusSpec{JetStreamExotic: &v1alpha1.JetStreamConfig{}}}
	if err := sensors.ValidateSensor(&asked.Sensor, bus); err != nil {
		log.Fatal(err)
	}
	var client dynamic.Interface
	if path := os.Getenv("KUBECONFIG"); path != "" {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			log.Fatal(err)
		}
		client = dynamic.NewForConfigOrDie(config)
	}
	for _, trigger := range asked.Sensor.Spec.Triggers {
		object, err := triggered(asked, trigger, client)
		if err != nil {
			log.Fatal(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(object); err != nil {
			log.Fatal(err)
		}
	}
}
