"""Small manifests to put into an API server."""

JOBS = "/apis/kubeflow.org/v1/namespaces/{}/mxjobs"
PODS = "/api/v1/namespaces/{}/pods"
SERVICES = "/api/v1/namespaces/{}/services"
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"
EVENTS = "/api/v1/namespaces/{}/events"


def mxjob(name, *, labels=None, replicas=1, **metadata):
    template = {"spec": {"containers": [{"name": "mxnet", "image": "mxjob/mxnet:1.9.1"}]}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": name, **({"labels": labels} if labels else {}), **metadata},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {"Worker": {"replicas": replicas, "template": template}}},
    }


def pod(name, *, labels=None, node=None, owner=None, **spec):
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    if owner:
        metadata["ownerReferences"] = [owned_by(owner)]
    spec = {"containers": [{"name": "main", "image": "busybox"}], **({"nodeName": node} if node else {}), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def config_map(name, *, labels=None, owner=None, **data):
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    if owner:
        metadata["ownerReferences"] = [owned_by(owner)]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def owned_by(owner, **more):
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **more,
    }


def event(name, about, *, reason="Happened", message="something happened"):
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": about["metadata"]["namespace"]},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": about["metadata"]["name"],
            "namespace": about["metadata"]["namespace"],
            "uid": about["metadata"]["uid"],
        },
        "reason": reason,
        "message": message,
        "type": "Normal",
        "source": {"component": "mxjob-controller"},
        "count": 1,
        "firstTimestamp": about["metadata"]["creationTimestamp"],
        "lastTimestamp": about["metadata"]["creationTimestamp"],
    }
