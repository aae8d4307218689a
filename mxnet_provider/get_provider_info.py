"""Entry point of Airflow's provider discovery; imports no Airflow, which is still configuring itself then."""

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
        "operators": _modules(
            "operators.mxnet_job", "operators.mxnet_tune", "operators.mxnet_sweep", "operators.mxnet_job_delete"
        ),
        "sensors": _modules("sensors.mxnet_job"),
        "hooks": _modules("hooks.mxnet_job", "hooks.mxnet_job_async"),
        "triggers": _modules("triggers.mxnet_job", "triggers.mxnet_job_state"),
        "task-decorators": [
            {"name": "mxnet_cmd", "class-name": "mxnet_provider.decorators.mxnet_cmd.mxnet_cmd_task"},
        ],
        "extra-links": ["mxnet_provider.links.mxnet_job.MXNetJobLink", "mxnet_provider.links.mxnet_job.MXNetLogsLink"],
        "cli": ["mxnet_provider.cli.definition.get_mxnet_cli_commands"],
        "config": {
            "mxnet": {
                "description": "How tasks that run MXJobs link to what others show about them.",
                "options": {
                    "job_url_template": _template(
                        "The page of a job",
                        "https://dashboard.example.com/{namespace}/mxjobs/{name}",
                        "the link is the `status.url` of the job",
                    ),
                    "logs_url_template": _template(
                        "The logs of a job's pods",
                        "https://logs.example.com/?namespace={namespace}&job={name}",
                        "no link",
                    ),
                },
            }
        },
    }


def _modules(*names: str) -> list[dict[str, Any]]:
    return [{"integration-name": _INTEGRATION, "python-modules": [f"mxnet_provider.{name}" for name in names]}]


def _template(what: str, example: str, without: str) -> dict[str, Any]:
    fields = "`{name}`, `{namespace}` and `{uid}`"
    return {
        "description": f"{what}, with the fields {fields}; {without} where it is empty.",
        "version_added": "0.1.0",
        "type": "string",
        "example": example,
        "default": "",
    }
