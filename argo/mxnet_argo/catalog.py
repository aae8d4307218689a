"""The WorkflowTemplates that we ship: for `kubectl apply -k argo/templates`, and for `mxjob_ref`.

Each is a workflow of its own (`argo submit --from workflowtemplate/mxjob-train`) and has templates that other workflows
can refer to. `argo/templates/cluster` makes ClusterWorkflowTemplates of them.
"""

from collections.abc import Callable
from typing import Any, Final

from hera.workflows import DAG, Parameter, Workflow, WorkflowTemplate
from hera.workflows.models import LabelValueFrom, WorkflowMetadata

from mxnet_argo.catalog_values import (
    env_with,
    listed,
    mapped,
    mounts_of,
    resources_with_gpus,
    servers_or_default,
)
from mxnet_argo.cleanup import KEEP_FAILED, delete_jobs_on_exit
from mxnet_argo.inputs import as_argument, as_input, parameters
from mxnet_argo.job import MXJobSpec
from mxnet_argo.manifest_input import AS_JSON
from mxnet_argo.pipelines import sweep, tune_then_train
from mxnet_argo.runner import MXJobRunner
from mxnet_argo.step import MXJobStep
from mxnet_argo.values import Value, data, integer, text
from mxnet_operator.api import names

SERVICE_ACCOUNT: Final = "mxjob-workflow"
"""What workflows run as: argo/templates/rbac.yaml makes it."""
_SHOWN: Final = ("image", "command", "args", "workers", "tune-image", "tune-command", "trials")
"""Parameters that a run's description has, for whoever misspelt one: Argo takes parameters that no template has."""
_DESCRIPTION: Final = "workflows.argoproj.io/description"
_SHOWN_BYTES: Final = 1000
"""Of each: all annotations of an object together may have 256 KiB, and trials may be long."""
_CHOICES: Final = " ".join(
    (
        "let choice = workflow.parameters['on-failure'] ?? 'delete';",
        f"let kept = workflow.parameters['{KEEP_FAILED}'] ?? '0';",
        "let asked = workflow.parameters['delete-with-workflow'] ?? 'true';",
        "not (choice in ['delete', 'keep']) ? 'on-failure is delete or keep, not ' + choice",
        ": not (kept matches '^([0-9]+|([0-9.]+(ns|us|ms|s|m|h))+)$')",
        f"? '{KEEP_FAILED} is a duration such as 30m or 1h30m, not ' + kept",
        ": not (asked in ['true', 'false']) ? 'delete-with-workflow is true or false, not ' + asked : choice",
    )
)
"""A label of the run: words that can't be a label's value end the run before anything trains, and are its message."""

_IMAGE = Parameter(name="image", description="the image of all replicas")
_COMMAND = Parameter(name="command", description='a JSON list: ["python", "train.py"]')
_ARGS = Parameter(name="args", default="[]", description="a JSON list of arguments")
_ENV = Parameter(name="env", default="[]", description='a JSON list of variables: [{"name": "A", "value": "b"}]')
_WORKERS = Parameter(name="workers", default="1", description="how many train")
_SERVERS = Parameter(
    name="servers",
    default="",
    description="how many keep parameters; empty: as many as workers, but none for one; 0: each trains on its own",
)
_RESOURCES = Parameter(name="resources", default="{}", description="of each worker, as JSON, as Kubernetes writes it")
_GPUS = Parameter(name="gpus-per-worker", default="0", description="GPUs (nvidia.com/gpu) of each worker")
_VOLUMES = Parameter(name="volumes", default="[]", description="a JSON list of volumes, as Kubernetes writes them")
_VOLUME_MOUNTS = Parameter(name="volume-mounts", default="[]", description="a JSON list of where they are mounted")
_NODE_SELECTOR = Parameter(name="node-selector", default="{}", description="labels that nodes must have, as JSON")
_TOLERATIONS = Parameter(name="tolerations", default="[]", description="a JSON list of tolerations")
_PULL_SECRETS = Parameter(
    name="image-pull-secrets", default="[]", description='a JSON list of references: [{"name": "registry"}]'
)
_BACKOFF_LIMIT = Parameter(name="backoff-limit", default="6", description="failures after which it is given up")
_DEADLINE = Parameter(name="deadline", default="86400", description="seconds for which the job may be active")
_DELETE_WITH_WORKFLOW = Parameter(
    name="delete-with-workflow",
    default="true",
    enum=["true", "false"],
    description="whether the controller deletes unfinished jobs of a workflow that is over or terminated",
)
_MANIFEST = Parameter(name="manifest", description=f"an MXJob as JSON, which {AS_JSON} makes")
_TUNING = (
    Parameter(name="tune-image", description="the image of tracker, servers and tuner"),
    Parameter(name="tune-command", description="a JSON list, the same for all of them"),
    Parameter(name="tune-args", default="[]", description="a JSON list of arguments"),
    Parameter(name="tune-env", default="[]", description="a JSON list of variables"),
    Parameter(name="tune-key", default="", description="the TVM RPC key under which servers offer themselves"),
    Parameter(name="tune-servers", default="1", description="how many measure"),
    Parameter(name="tune-deadline", default="86400", description="seconds for which the tuning may be active"),
    _DELETE_WITH_WORKFLOW,
)
_RUNNER_IMAGE = Parameter(
    name="runner-image",
    default="mxnet-operator:0.2.0.dev0",
    description="an image with mxjob: operator/Dockerfile makes it",
)
_TRAINING = (
    *(_IMAGE, _COMMAND, _ARGS, _ENV, _WORKERS, _SERVERS, _RESOURCES, _GPUS),
    *(_VOLUMES, _VOLUME_MOUNTS, _NODE_SELECTOR, _TOLERATIONS, _PULL_SECRETS),
    *(_BACKOFF_LIMIT, _DEADLINE, _DELETE_WITH_WORKFLOW),
)


def train(name: str = "train", variable: Parameter | None = None) -> MXJobStep:
    """Build a distributed training: a scheduler, servers and workers of one image.

    With `variable`, an input of its own, all replicas find that in a variable of its name in capitals, too.
    """
    given = str(variable.name) if variable is not None else ""
    env = env_with("env", given.upper(), given) if given else listed("env")
    others = _TRAINING if variable is None else (variable, *_TRAINING)
    return MXJobStep(
        name=name,
        inputs=[as_input(each) for each in others],
        spec=_training(env),
        deadline=integer("deadline"),
        delete_with_workflow=text("delete-with-workflow"),
    )


def run(name: str = "run") -> MXJobRunner:
    """Build a distributed training, followed by our own command line in a pod with rights of its own."""
    return MXJobRunner(
        name=name,
        image="{{inputs.parameters.runner-image}}",
        inputs=[as_input(each) for each in (*_TRAINING, _RUNNER_IMAGE)],
        spec=_training(listed("env")),
        deadline=integer("deadline"),
        delete_with_workflow=text("delete-with-workflow"),
    )


def manifest(name: str = "manifest") -> MXJobStep:
    """Build a job of which an input has the whole manifest."""
    return MXJobStep(
        name=name,
        prefix="mxjob",
        inputs=[as_input(each) for each in (_MANIFEST, _DEADLINE, _DELETE_WITH_WORKFLOW)],
        manifest=data("manifest"),
        deadline=integer("deadline"),
        delete_with_workflow=text("delete-with-workflow"),
    )


def _training(env: Value) -> MXJobSpec:
    return MXJobSpec(
        image=text("image"),
        command=listed("command"),
        args=listed("args"),
        env=env,
        workers=integer("workers"),
        servers=servers_or_default("servers", "workers"),
        container_resources=resources_with_gpus("resources", "gpus-per-worker", names.GPU),
        volumes=listed("volumes"),
        volume_mounts=mounts_of("volume-mounts", "volumes"),
        node_selector=mapped("node-selector"),
        tolerations=listed("tolerations"),
        image_pull_secrets=listed("image-pull-secrets"),
        backoff_limit=integer("backoff-limit"),
    )


def tune(name: str = "tune") -> MXJobStep:
    """Build a TVM tuning: a tracker, servers that measure, and a tuner whose success ends the job."""
    container = {
        "name": names.CONTAINER,
        "image": text("tune-image"),
        "command": listed("tune-command"),
        "args": listed("tune-args"),
        "env": listed("tune-env"),
    }
    counts = {names.TUNER_TRACKER: 1, names.TUNER_SERVER: integer("tune-servers"), names.TUNER: 1}
    replicas = {
        replica_type: {
            "replicas": count,
            "restartPolicy": "ExitCode",
            "template": {
                "metadata": {"annotations": {names.TUNER_KEY_ANNOTATION: text("tune-key")}},
                "spec": {"containers": [container]},
            },
        }
        for replica_type, count in counts.items()
    }
    return MXJobStep(
        name=name,
        inputs=[as_input(each) for each in _TUNING],
        manifest={"spec": {"jobMode": "MXTune", "mxReplicaSpecs": replicas}},
        deadline=integer("tune-deadline"),
        delete_with_workflow=text("delete-with-workflow"),
    )


def _workflow(name: str, entrypoint: MXJobStep | MXJobRunner | DAG, *others: Any) -> WorkflowTemplate:
    inputs = parameters(entrypoint.inputs).values()
    shown = [str(each.name) for each in inputs if each.name in _SHOWN]
    workflow = WorkflowTemplate(
        name=name,
        entrypoint=entrypoint.name,
        service_account_name=SERVICE_ACCOUNT,
        arguments=[as_argument(each) for each in inputs],
        labels={"app.kubernetes.io/part-of": "mxnet-operator"},
        workflow_metadata=WorkflowMetadata(
            annotations={_DESCRIPTION: ", ".join(map(_described, shown))},
            labels_from={"mxjob.kubeflow.org/on-failure": LabelValueFrom(expression=_CHOICES)},
        ),
    )
    workflow.templates.extend([*others, entrypoint])
    delete_jobs_on_exit(workflow, choice="on-failure")
    return workflow


def _described(parameter: str) -> str:
    reference = f".{parameter}" if parameter.isidentifier() else f"['{parameter}']"
    return f"{parameter} {{{{=sprig.trunc({_SHOWN_BYTES}, workflow.parameters{reference})}}}}"


def mxjob_sweep() -> WorkflowTemplate:
    """Build a training for each trial, whose settings are JSON in the variable TRIAL; the best by a number wins."""
    step = train(variable=Parameter(name="trial", description="the trial's settings"))
    with Workflow(name="templates") as made:
        entrypoint = sweep("sweep", step, by="accuracy", trial_inputs="trial")
    return _workflow("mxjob-sweep", entrypoint, step, *(each for each in made.templates if each is not entrypoint))


def mxjob_tune_then_train() -> WorkflowTemplate:
    """Build a tuning, and then a training whose replicas find its result in the variable TUNED."""
    steps = tune(), train(variable=Parameter(name="tuned", description="what the tuning found"))
    return _workflow("mxjob-tune-then-train", tune_then_train("tune-then-train", *steps, tuned_input="tuned"), *steps)


CATALOG: Final[dict[str, Callable[[], WorkflowTemplate]]] = {
    "mxjob-train": lambda: _workflow("mxjob-train", train()),
    "mxjob-runner": lambda: _workflow("mxjob-runner", run()),
    "mxjob-manifest": lambda: _workflow("mxjob-manifest", manifest()),
    "mxjob-sweep": mxjob_sweep,
    "mxjob-tune-then-train": mxjob_tune_then_train,
}
