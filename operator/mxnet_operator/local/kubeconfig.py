"""Kubeconfig of the local cluster, for kubectl, Airflow, `mxjob`, the kubelet and the controller."""

import base64
import json

CONTEXT = "mxjob-local"


def kubeconfig(*, port: int, authority_pem: bytes, token: str, address: str = "127.0.0.1") -> bytes:
    """Build a kubeconfig with one context (JSON, which is YAML too)."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"}}],
            "clusters": [
                {
                    "name": CONTEXT,
                    "cluster": {
                        "server": f"https://{address}:{port}",
                        "certificate-authority-data": base64.b64encode(authority_pem).decode(),
                    },
                }
            ],
            "users": [{"name": CONTEXT, "user": {"token": token}}],
        },
        indent=2,
    ).encode()
