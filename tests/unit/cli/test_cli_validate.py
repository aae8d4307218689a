"""`mxjob validate`, run as a user runs it."""

import subprocess
import sys

import pytest
from waiting import SECONDS

GOOD = """\
apiVersion: kubeflow.org/v1
kind: MXJob
metadata: {name: good}
spec:
  jobMode: MXTrain
  mxReplicaSpecs:
    Worker:
      template: {spec: {containers: [{name: mxnet, image: "mxjob/mxnet:1.9.1"}]}}
"""


def test_a_good_manifest_is_ok(mxjob):
    assert mxjob("validate", "-f", "-", stdin=GOOD) == (0, "stdin: ok: MXJob good\n", "")


def test_every_mistake_is_told_with_line_and_field_and_nothing_else_is_on_stdout(mxjob):
    bad = (
        GOOD.replace("  jobMode: MXTrain\n", "")
        .replace("name: mxnet, ", "")
        .replace("Worker:", "Worker:\n      replica: 2")
    )

    code, out, _err = mxjob("validate", "-", stdin=bad)

    assert code == 2
    assert out.splitlines() == [
        "stdin:4: spec.jobMode: Required value: MXTrain or MXTune",
        "stdin:8: spec.mxReplicaSpecs.Worker.template.spec.containers[0].name: Required value",
        'stdin:7: unknown field "spec.mxReplicaSpecs.Worker.replica", did you mean replicas?',
    ]


def test_fields_of_a_newer_kubernetes_are_taken_on_request(mxjob):
    newer = GOOD.replace("{containers:", "{newInKubernetes140: 1, containers:")
    code, out, _err = mxjob("validate", "-", stdin=newer)
    assert code == 2
    assert "spec.newInKubernetes140" in out
    assert mxjob("validate", "--allow-unknown-fields", "-", stdin=newer)[0] == 0


def test_other_kinds_are_skipped_with_a_note_on_stderr(mxjob):
    code, out, err = mxjob("validate", "-f", "-", stdin=f"kind: ConfigMap\n---\n{GOOD}")

    assert code == 0
    assert out == "stdin (document 2): ok: MXJob good\n"
    assert err == "stdin (document 1): skipped: kind ConfigMap is not checked\n"


def test_a_mistake_in_a_list_is_told_with_the_jobs_namespace_as_far_as_it_has_one(mxjob):
    for metadata, name in (
        ("{name: good, namespace: team-a}", "MXJob team-a/good: "),
        ("{name: good, namespace: [1]}", "MXJob good: "),
        ("{generateName: good-}", ""),
        ("[]", ""),
    ):
        bad = GOOD.replace("{name: good}", metadata).replace("  jobMode: MXTrain\n", "")
        code, out, err = mxjob("validate", "-", stdin=f"{GOOD}---\n{bad}")
        assert code == 2, err
        assert out.count("\n") >= 2
        assert all(line.split(": ", 1)[1].startswith(name) for line in out.splitlines()[1:]), out


@pytest.mark.parametrize(
    "empty",
    [
        'apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: ""\n',
        '{"kind": "MXJobList", "apiVersion": "kubeflow.org/v1", "metadata": {}, "items": []}',
        "kind: List\nitems: []\n---\nkind: List\nitems: []\n",
    ],
)
def test_a_cluster_without_jobs_has_nothing_to_check_and_that_is_no_error(mxjob, empty):
    assert mxjob("validate", "-", stdin=empty) == (0, "", "stdin: nothing to check: empty list\n")
    code, _, err = mxjob("run", "-f", "-", stdin=empty)
    assert code == 2
    assert "stdin: empty list; expected an MXJob manifest" in err
    assert mxjob("validate", "-", stdin="# none\n")[0] == 2


def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_being_checked(mxjob):
    code, out, err = mxjob("validate", "/no/such.yaml", "-", stdin=GOOD)

    assert code == 2
    assert out == "stdin: ok: MXJob good\n"
    assert err == "error: /no/such.yaml: No such file or directory\n"


def test_no_manifest_at_all_is_a_usage_error(mxjob):
    code, _out, err = mxjob("validate")

    assert code == 2
    assert "no manifest given" in err


BARE = """
import sys
ABSENT = "aiohttp jsonpatch kubernetes packaging pathspec platformdirs trustme uv uvloop"
sys.modules |= dict.fromkeys(ABSENT.split())
from mxnet_operator.cli.mxjob import main
for line in sys.argv[1:]:
    sys.argv = ["mxjob", *line.split()]
    try:
        main()
    except SystemExit as left:
        print("exit", left.code, flush=True)
"""


def with_base_dependencies_only(*lines, cwd=None):
    command = [sys.executable, "-c", BARE, *lines]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=cwd)


def test_help_and_version_need_nothing_but_the_base_dependencies():
    done = with_base_dependencies_only("--help", "run --help", "logs -h", "local up --help", "--version")

    assert done.stdout.count("exit 0") == 5, done.stderr


def test_a_missing_extra_is_named_with_how_to_install_it(tmp_path):
    (tmp_path / "train.py").write_text("print 'Python 2'\n")
    done = with_base_dependencies_only(
        "local up", "local status", "local image list", "logs a", "run train.py", cwd=tmp_path
    )

    assert done.stdout.count("exit 1") == 5, done.stderr
    assert done.stderr.count("pip install './mxnet-operator[local]'") == 4
    assert done.stderr.count("pip install './mxnet-operator[controller]'") == 1
    assert "Traceback" not in done.stderr


def test_a_gpu_that_nothing_uses_is_a_warning_and_no_mistake(mxjob):
    container = '{name: mxnet, image: "mxjob/mxnet:1.9.1", resources: {limits: {nvidia.com/gpu: 1}}}'
    job = GOOD.partition("    Worker:")[0] + "".join(
        f"    {kind}:\n      template: {{spec: {{containers: [{container}]}}}}\n" for kind in ("Scheduler", "Worker")
    )
    code, out, err = mxjob("validate", "-", stdin=job)
    assert (code, out) == (0, "stdin: ok: MXJob good\n")
    assert err.startswith("stdin: warning: Scheduler: the template asks for nvidia.com/gpu, which a Scheduler never")
    assert err.count("warning") == 1


@pytest.mark.parametrize("kind", ["", "null", "~"])
@pytest.mark.parametrize("verb", ["validate", "convert"])
def test_a_kind_that_is_null_is_a_mistake(mxjob, verb, kind):
    manifest = f"apiVersion: kubeflow.org/v1\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{}}\n"
    code, out, err = mxjob(verb, "-f", "-", stdin=manifest)
    assert code == 2
    assert "stdin:2: kind: " in out + err


def test_several_workers_without_a_server_are_warned_of(mxjob):
    several = GOOD.replace("Worker:", "Worker:\n      replicas: 2")
    code, _out, err = mxjob("validate", "-", stdin=several)
    assert (code, "stdin: warning: 2 Workers and no Server" in err) == (0, True)
    template = GOOD[GOOD.index("      template:") :]
    served = several + "".join(f"    {kind}:\n{template}" for kind in ("Server", "Scheduler"))
    assert mxjob("validate", "-", stdin=served)[2] == ""
    assert mxjob("validate", "-", stdin=GOOD)[2] == ""
