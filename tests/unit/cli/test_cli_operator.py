"""`mxnet-operator run`: flags, their variables, refusals, and docs/controller-reference.md, which says the same."""

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer.main
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from mxnet_operator.api.types import Metric, TrainingStatus
from mxnet_operator.cli import mxnet_operator
from mxnet_operator.cli.daemons import controller
from mxnet_operator.cli.mxnet_operator import app
from mxnet_operator.controller.controller import DEFAULT_WORKERS, Controller
from mxnet_operator.controller.endpoints import Address
from mxnet_operator.controller.instrumentation import JobEvent
from mxnet_operator.controller.metrics import Metrics
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.lease import LeaderElector, LeaseTimes, own_identity

OLD_ENVIRONMENT = {"USE_KUBE_CONFIG": "/k", "MY_POD_NAMESPACE": "ops", "MY_POD_NAME": "my-pod"}
PAGE = Path(__file__).parents[3] / "docs" / "controller-reference.md"


@pytest.fixture
def run(monkeypatch):
    """Runs the command up to where it would go to work; gives the options that it would work with."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    def invoke(*arguments, **environment):
        seen = []

        async def note(options):
            seen.append(options)

        monkeypatch.setattr(controller, "run", note)
        monkeypatch.setattr("mxnet_operator.controller.log_format.configure_logging", lambda *_: None)
        command = typer.main.get_command(app)
        result = CliRunner().invoke(command, ["run", *arguments], env={"COLUMNS": "200", **environment})
        return seen[0] if seen else result

    return invoke


def test_the_defaults_are_those_of_the_code(run):
    options = run()
    assert options.namespaces == ()
    assert options.workers == DEFAULT_WORKERS
    assert options.election == controller.Election(name="mxnet-operator", namespace=None, times=LeaseTimes())
    assert (options.metrics, options.health) == (Address("127.0.0.1", 8080), Address("127.0.0.1", 8081))


def test_in_a_pod_it_listens_on_every_address(run):
    options = run(KUBERNETES_SERVICE_HOST="10.0.0.1")
    assert (options.metrics, options.health) == (Address(None, 8080), Address(None, 8081))


def test_flags_are_taken(run):
    options = run(
        *("--namespace", "a,b", "-n", "c", "-n", "a", "--workers=3", "--leader-elect-resource-name=mine"),
        *("--leader-elect-resource-namespace=ops", "--leader-elect-lease-duration=1m"),
        *("--leader-elect-renew-deadline=1.5s", "--leader-elect-retry-period=500ms"),
        *("--metrics-bind-address=0", "--health-probe-bind-address=:9000"),
    )
    assert (options.namespaces, options.workers) == (("a", "b", "c"), 3)
    assert options.election == controller.Election(name="mine", namespace="ops", times=LeaseTimes(60, 1.5, 0.5))
    assert (options.metrics, options.health) == (None, Address(None, 9000))


def test_environment_variables_are_taken_and_flags_go_before_them(run):
    options = run(
        "--workers=4",
        MXNET_OPERATOR_WORKERS="5",
        MXNET_OPERATOR_NAMESPACES="a,b c",
        MXNET_OPERATOR_LEADER_ELECT="false",
        MXNET_OPERATOR_METRICS_BIND_ADDRESS="[::1]:1",
    )
    assert (options.workers, options.namespaces, options.election) == (4, ("a", "b", "c"), None)
    assert options.metrics == Address("::1", 1)


def test_the_environment_of_the_1x_operators_is_taken(run):
    options = run(**OLD_ENVIRONMENT)
    assert options.target.kubeconfig == "/k"
    assert (options.election.namespace, options.election.member) == ("ops", "my-pod")
    assert own_identity(options.election.member).startswith("my-pod_")
    ours = run("--kubeconfig=/a", MXNET_OPERATOR_LEADER_ELECT_RESOURCE_NAMESPACE="b", **OLD_ENVIRONMENT)
    assert (ours.target.kubeconfig, ours.election.namespace) == ("/a", "b")


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("--metrics-bind-address=8080", "is no address"),
        ("--leader-elect-lease-duration=soon", "is no duration"),
        ("--leader-elect-lease-duration=2.5s", "whole seconds"),
        ("--leader-elect-lease-duration=3s", "less than the lease duration"),
        ("--leader-elect-retry-period=3s", "no time to renew"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(run, flag, says):
    result = run(flag)
    assert result.exit_code == 2
    assert says in re.sub(r"[\s│]+", " ", result.output)


def section(name):
    return PAGE.read_text("utf-8").split(f"<!-- {name}: ", 1)[1].split("-->\n", 1)[1].split("<!-- end", 1)[0]


def variables_of(option):
    return [option.envvar] if isinstance(option.envvar, str) else list(option.envvar)


def flags_table():
    """The flags of `run` as the page shows them."""
    rows = ["| flag | variable | default | |", "|---|---|---|---|"]
    for option in typer.main.get_command(app).commands["run"].params:
        if not option.envvar:
            continue
        flags = ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
        shown = option.show_default if isinstance(option.show_default, str) else option.default
        default = {None: "", True: "on", False: "off"}.get(shown, str(getattr(shown, "value", shown)))
        variables = ", ".join(f"`{name}`" for name in variables_of(option))
        rows.append(f"| {flags} | {variables} | {default} | {option.help} |")
    return "\n".join(rows) + "\n"


def test_the_page_has_every_flag_as_help_says_it():
    assert section("flags") == flags_table(), f"put this into docs/controller-reference.md:\n{flags_table()}"


def test_every_flag_but_those_of_kubectl_has_a_variable_of_its_name():
    for option in typer.main.get_command(app).commands["run"].params:
        if option.name not in {"kubeconfig", "context", "help", "namespace"}:
            flag = option.opts[0]
            assert variables_of(option)[0] == "MXNET_OPERATOR_" + flag.removeprefix("--").replace("-", "_").upper()


def families():
    """Every metric that the controller can serve, by its name."""
    metrics = Metrics()
    client = Client(None)
    controller = Controller(client, elector=LeaderElector(client, "default", "mxnet-operator"))
    controller.jobs_by_state = lambda: {("default", "Running"): 1}  # type: ignore[assignment,method-assign,return-value]
    training = TrainingStatus(
        epoch=7, progress_percentage=70, estimated_remaining_seconds=9, metrics=(Metric(name="loss", value="0.5"),)
    )
    controller.trainings = lambda: {"default/digits": training}  # type: ignore[method-assign]
    metrics.watch(controller)
    metrics.job_started("default", 1.0)
    metrics.requested("GET", "host", "200")
    metrics.crashed("reflector")
    for event in JobEvent:
        metrics.job("default", event)
    found = text_string_to_metric_families(metrics.render("")[0].decode())
    return {f"{family.name}_total" if family.type == "counter" else family.name: family for family in found}


async def test_the_page_has_every_metric_with_its_labels():
    served = {
        name: {label for sample in family.samples for label in sample.labels} - {"le"}
        for name, family in families().items()
    }
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in section("metrics").splitlines()[2:]]
    assert len({name for name, *_ in rows}) == len(rows)
    written = {name.strip("`"): {label for label in labels.split(", ") if label} for name, labels, _ in rows}
    assert written == served


def test_the_version_of_a_checkout_has_its_commit(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message=a"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout[:7]
    monkeypatch.chdir(tmp_path)
    for source, shown in (
        (json.dumps({"url": f"file://{tmp_path}"}), f"1.2.3 (checkout at {head})"),
        (json.dumps({"url": f"file://{tmp_path}/a.whl"}), "1.2.3"),
        (json.dumps({"url": "https://example.com/a.whl"}), "1.2.3"),
        (None, "1.2.3"),
    ):
        installed = SimpleNamespace(version="1.2.3", read_text=lambda _, source=source: source)
        monkeypatch.setattr("importlib.metadata.distribution", lambda _, installed=installed: installed)
        result = CliRunner().invoke(typer.main.get_command(mxnet_operator.app), ["--version"])
        assert (result.exit_code, result.output) == (0, f"mxnet-operator {shown}\n")


def test_a_template_of_job_pages_is_taken_from_its_flag_or_its_variable(run):
    assert run().job_url_template == ""
    assert run("--job-url-template", "https://a.example/{name}").job_url_template == "https://a.example/{name}"
    from_environment = run(MXNET_OPERATOR_JOB_URL_TEMPLATE="https://b.example/{uid}")
    assert from_environment.job_url_template == "https://b.example/{uid}"


def test_a_template_that_gives_no_address_is_rejected_at_the_start(run):
    result = run("--job-url-template", "https://a.example/{job}")
    assert result.exit_code == 2
    assert "has the placeholder {job}" in " ".join(result.output.replace("│", " ").split())
