"""The provider as Airflow sees it: discovered, valid, templated, serialisable, and free of what Airflow deprecates."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import airflow
import jsonschema
import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from waiting import SECONDS

from mxnet_provider.get_provider_info import get_provider_info
from mxnet_provider.job import task_labels
from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.options import DEFAULT_CONNECTION

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = Path(airflow.__file__).with_name("provider_info.schema.json")

KINDS = ("hooks", "operators", "sensors", "triggers")
MODULES = [
    "mxnet_provider.decorators.mxnet_cmd",
    "mxnet_provider.exceptions",
    "mxnet_provider.hooks.mxnet_job",
    "mxnet_provider.hooks.mxnet_job_async",
    "mxnet_provider.links.mxnet_job",
    "mxnet_provider.operators.mxnet_job",
    "mxnet_provider.operators.mxnet_tune",
    "mxnet_provider.operators.mxnet_sweep",
    "mxnet_provider.operators.mxnet_job_delete",
    "mxnet_provider.sensors.mxnet_job",
    "mxnet_provider.triggers.mxnet_job",
    "mxnet_provider.triggers.mxnet_job_state",
]


def python(code):
    """Run code in a Python of its own: its exit code and what it printed."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_provider_info_is_valid_by_airflow_s_own_schema():
    jsonschema.validate(get_provider_info(), json.loads(SCHEMA.read_text()))


def test_every_module_that_the_provider_info_names_exists():
    named = [
        module
        for kind in KINDS
        for integration in get_provider_info()[kind]
        for module in integration["python-modules"]
    ]
    assert set(named) <= set(MODULES)
    assert {integration["integration-name"] for integration in get_provider_info()["integrations"]} == {"MXNet"}


def test_reading_the_provider_info_imports_no_airflow():
    code, output = python(
        "import sys; from mxnet_provider.get_provider_info import get_provider_info; get_provider_info();"
        "print([name for name in sys.modules if name.partition('.')[0] == 'airflow'])"
    )
    assert (code, output) == (0, "[]\n")


@pytest.mark.exhaustive
def test_neither_parsing_a_dag_nor_making_a_trigger_imports_a_kubernetes_client():
    """It takes seconds of processor time: for each parsing of each DAG, and on the triggerer's event loop."""
    code, output = python(
        "import sys\n"
        "import mxnet_provider.operators.mxnet_sweep, mxnet_provider.operators.mxnet_job_delete\n"
        "import mxnet_provider.sensors.mxnet_job\n"
        "import mxnet_provider.triggers.mxnet_job, mxnet_provider.triggers.mxnet_job_state\n"
        "print([m for m in sys.modules if m.partition('.')[0] in ('kubernetes', 'kubernetes_asyncio', 'aiohttp')])"
    )
    assert (code, output.splitlines()[-1]) == (0, "[]"), output


def test_names_that_are_written_here_too_are_airflow_s_own():
    from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook
    from airflow.providers.cncf.kubernetes.pod_generator import make_safe_label_value

    assert KubernetesHook.default_conn_name == DEFAULT_CONNECTION
    for value in ("train", "manual__2026-11-21T12:00:00+00:00", "d" * 200, "_x_", "é1", "", "a.b-c_d"):
        assert task_labels.safe_label(value) == make_safe_label_value(value)
    assert make_safe_label_value("é") == f"-{task_labels.safe_label('é')}"  # which Kubernetes rejects


@pytest.fixture(scope="module")
def providers(request):
    """What `airflow providers COMMAND --output json` prints: each of them in one process, which takes long to start."""
    try:
        importlib.metadata.distribution("mxnet-operator")
    except importlib.metadata.PackageNotFoundError:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("the distribution mxnet-operator is not installed")
    commands = {
        "list": [],
        "get": ["mxnet-operator", "--full"],
        "links": [],
        "triggers": [],
        "configs": [],
    }
    code, output = python(
        "from airflow.cli.cli_parser import get_parser\n"
        f"for command, arguments in {commands!r}.items():\n"
        "    args = get_parser().parse_args(['providers', command, *arguments, '--output', 'json'])\n"
        "    print(f'== {command}', flush=True)\n"
        "    args.func(args)\n"
    )
    assert code == 0, output
    printed = dict(part.split("\n", 1) for part in re.split("^== ", output, flags=re.MULTILINE)[1:])
    start = re.compile(r"^\[", re.MULTILINE)  # lines of logs begin with a time
    return {
        command: json.JSONDecoder().raw_decode(text, start.search(text).start())[0] for command, text in printed.items()
    }


@pytest.mark.exhaustive
def test_airflow_shows_the_provider_with_its_operators(providers):
    assert "mxnet-operator" in [provider["package_name"] for provider in providers["list"]]
    [shown] = providers["get"]
    modules = [module for each in shown["operators"] for module in each["python-modules"]]
    assert modules == [module for module in MODULES if ".operators." in module]


def test_airflow_shows_every_link_trigger_and_option(providers):
    info = get_provider_info()
    assert set(info["extra-links"]) <= {each["extra_link_class_name"] for each in providers["links"]}
    triggers = {each["class"] for each in providers["triggers"] if each["package_name"] == "mxnet-operator"}
    assert triggers == {module for each in info["triggers"] for module in each["python-modules"]}
    [shown] = [each["provider_config"] for each in providers["configs"] if "mxnet-operator" in each["provider_config"]]
    assert info["config"] in shown


@pytest.mark.exhaustive
def test_provider_and_dags_use_nothing_that_airflow_deprecates():
    files = [str(path) for path in (ROOT / "dags").glob("*.py")]
    code, output = python(
        "import importlib, runpy, warnings\n"
        "warnings.filterwarnings('error', category=DeprecationWarning, module='mxnet_provider|<run_path>|__main__')\n"
        f"for name in {MODULES!r}: importlib.import_module(name)\n"
        f"for path in {files!r}: runpy.run_path(path)\n"
    )
    assert code == 0, output


def test_template_fields_are_attributes_that_the_constructor_leaves_as_they_are():
    values = {field: object() for field in MXNetJobOperator.template_fields if field != "mxjob"}
    operator = MXNetJobOperator(task_id="t", **values)
    assert {field: getattr(operator, field) for field in values} == values
    assert operator.mxjob is None  # no argument: the operator writes it when there is a job


def test_a_dag_with_the_operator_can_be_serialised_mapped_or_not():
    with DAG("d", schedule=None) as dag:
        MXNetJobOperator(task_id="one", image="i", container_resources={"limits": {"nvidia.com/gpu": 1}})
        MXNetJobOperator.partial(task_id="many", image="i").expand(args=[["--seed", "1"], ["--seed", "2"]])
    serialised = json.loads(json.dumps(DagSerialization.serialize_dag(dag)))
    assert set(DagSerialization.deserialize_dag(serialised).task_dict) == {"one", "many"}
