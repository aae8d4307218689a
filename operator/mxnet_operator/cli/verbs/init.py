"""`mxjob init`: files that run a folder's script by `mxjob run -f`, Airflow and Argo."""

import json
import re
import shlex
from typing import Annotated, Final

import typer

from mxnet_operator.api.manifest_text import Dumper, dump_all
from mxnet_operator.cli.command import option, with_options
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.cli.running.dockerfile import write_dockerfile, write_new
from mxnet_operator.cli.running.images import EnvironmentOptions, complete_image, image_name, image_store
from mxnet_operator.cli.running.script import Script, job_prefix
from mxnet_operator.cli.verbs.job_options import JobOptions

EXAMPLES = """
[bold]Examples[/]

  mxjob init train.py --workers 2 -- --epochs 5

  mxjob init train.py --image registry.example.com/team/digits:1.0
"""

_MANIFEST: Final = "mxjob.yaml"
_DAG: Final = "mxjob_dag.py"
_WORKFLOW: Final = "mxjob_workflow.yaml"

_BRACE: Final = re.compile(r"\{(?=[{%#])")
"""Brace that begins a template of Airflow's, which renders the manifest; in quotes YAML knows it by its number."""
_ESCAPED: Final = r"\\x7b"


class _Dumper(Dumper):
    """Dumper that puts a text with a template's braces in double quotes, where escapes count."""

    def style_of(self, value: str) -> str | None:
        return '"' if _BRACE.search(value) else super().style_of(value)


_DAG_TEXT: Final = '''\
"""Airflow DAG that trains with the MXJob of {manifest}; written by `mxjob init`.

On the local cluster: KUBECONFIG=$(mxjob local kubeconfig) airflow dags test {dag_id}
"""

from pathlib import Path

from airflow.sdk import DAG

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

with DAG(
    dag_id="{dag_id}", schedule=None, catchup=False, template_searchpath=str(Path(__file__).resolve().parent)
):
    MXNetJobOperator(task_id="train", manifest="{manifest}", deferrable=True)
'''
_WORKFLOW_TEXT: Final = """\
# Argo Workflow that trains as {manifest} says; written by `mxjob init`. The namespace needs the project's templates
# (argo/templates): kubectl create -n NAMESPACE -f {workflow}
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{generateName: {prefix}-}}
spec:
  workflowTemplateRef: {{name: mxjob-train}}
  arguments:
    parameters:
"""


@with_options
def init(
    *,
    words: Annotated[
        list[str], typer.Argument(metavar="SCRIPT [-- ARGUMENTS...]", help="Python script and its arguments.")
    ],
    workers: int = option(default=1, min=1, help="Number of Workers.", show_default=True),
    image: str | None = option(
        metavar="IMAGE",
        help="Name of the image; default: the folder's name with the tag 1.0.",
        autocompletion=complete_image,
    ),
    environment: EnvironmentOptions,
) -> None:
    """Write mxjob.yaml, an Airflow DAG, an Argo Workflow and a Dockerfile for the folder of a script.

    A file that exists is kept. The local cluster gets the folder as the image that the files name, so that they run
    there as they are; a cluster gets it by docker build and push.
    """
    script = Script.of(words)
    name = image or f"{image_name(script.folder)}:1.0"
    prefix = job_prefix(script.command)
    job, _ = JobOptions(image=name, command=list(script.command), workers=workers).job()
    with image_store() as store:
        from mxnet_operator.local.images.day import DayImage  # noqa: PLC0415

        base = environment.base(store, script.folder)
        store.add(name, script.folder, base if environment.given() else None)
    on = f"; the image has the packages of {base}" if DayImage.parse(base) else ""
    dag_id = prefix.replace("-", "_")
    # Argo would replace what two braces begin.
    words_in_argo = json.dumps(list(script.command)).replace("{{", "{\\u007b")
    parameters = {"image": name, "command": words_in_argo, "workers": str(workers)}
    texts = {
        _MANIFEST: f"# Written by `mxjob init`{on}.\n{_BRACE.sub(_ESCAPED, dump_all([job], dumper=_Dumper))}",
        _DAG: _DAG_TEXT.format(manifest=_MANIFEST, dag_id=dag_id),
        _WORKFLOW: _WORKFLOW_TEXT.format(manifest=_MANIFEST, workflow=_WORKFLOW, prefix=prefix)
        + "".join(f"      - {json.dumps({'name': key, 'value': value})}\n" for key, value in parameters.items()),
    }
    written = {file: write_new(script.folder / file, text) for file, text in texts.items()}
    written["Dockerfile"] = write_dockerfile(script.folder, script.command, [], base)
    for file, is_new in written.items():
        say(f"{script.folder / file} {'written' if is_new else 'exists and is kept'}")
    folder = shlex.quote(str(script.folder))
    say(f"the local cluster has the folder as the image {name}; then:")
    say(f"  mxjob run -f {shlex.quote(str(script.folder / _MANIFEST))}")
    say(f"  AIRFLOW__CORE__DAGS_FOLDER={folder} KUBECONFIG=$(mxjob local kubeconfig) airflow dags test {dag_id}")
    say(f"  kubectl create -f {shlex.quote(str(script.folder / _WORKFLOW))}   (Argo, with the image pushed)")
