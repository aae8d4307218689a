"""What Airflow's provider discovery reads; imports no Airflow, which is still configuring itself then."""

from typing import Any

_INTEGRATION = "MXNet"


def get_provider_info() -> dict[str, Any]:
    """Describe the provider, in the terms of Airflow's `provider_info.schema.json`.

    The connection type is `kubernetes`, which Airflow's own Kubernetes provider declares.
    """
    return {
        "package-name": "mxnet-operator",
        "name": "MXNet",
        "description": "Run MXNet 1.x training and TVM tuning as `MXJob` resources of a Kubernetes cluster.",
        "integrations": [
            {
                "integration-name": _INTEGRATION,
                "external-doc-url": "https://mxnet.apache.org/",
                "tags": ["software"],
            }
        ],
        "operators": [{"integration-name": _INTEGRATION, "python-modules": ["mxnet_provider.operators.mxnet_job"]}],
        "hooks": [{"integration-name": _INTEGRATION, "python-modules": ["mxnet_provider.hooks.mxnet_job"]}],
    }
