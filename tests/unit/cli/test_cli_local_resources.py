"""`mxjob local up --resource` and `--node-label`, as they are read before anything is started."""

import pytest

from mxnet_operator.cli.daemons import local_cluster
from mxnet_operator.local.claims import AlreadyRunningError


@pytest.fixture
def up(monkeypatch, mxjob):
    """Runs `mxjob local up`, which starts nothing; returns its exit code, its options if any, and stderr."""

    def run(*args):
        started = []
        monkeypatch.setattr(local_cluster, "in_foreground", lambda options, policy: started.append(options))
        code, _, err = mxjob("local", "up", *args)
        return code, started[0] if started else None, err

    return run


def test_each_names_a_resource_and_how_many_there_are(up):
    code, options, _ = up("--resource", "amd.com/gpu=2", "--resource", "example.com/fpga_x=0", "--gpu-share", "4")
    assert code == 0
    assert (options.resources, options.gpu_share) == ((("amd.com/gpu", 2), ("example.com/fpga_x", 0)), 4)


def test_each_label_of_the_node_has_a_key_and_a_value(up):
    code, options, _ = up("--node-label", "pool=gpus", "--node-label", "example.com/rack=")
    assert (code, options.node_labels) == (0, (("pool", "gpus"), ("example.com/rack", "")))


@pytest.mark.parametrize(
    ("option", "text", "why"),
    [
        *(
            ("--resource", text, "expected NAME=COUNT with a name such as amd.com/gpu and a whole number")
            for text in ("amd.com/gpu", "gpu=2", "amd.com/gpu=-1", "amd.com/gpu=1.5", "=2", "a/b/c=1", "A/b=1", "a/b=²")
        ),
        ("--resource", "cpu=4", "--cpus"),
        ("--resource", "requests.kubernetes.io/x=1", "reserved for Kubernetes"),
        ("--node-label", "pool", "expected KEY=VALUE"),
        ("--node-label", "=gpus", "non-empty"),
        ("--node-label", "pool=a=b", "a valid label must be"),
    ],
)
def test_what_is_none_is_refused_with_what_is_expected(up, option, text, why):
    code, options, told = up(option, text)
    assert (code, options) == (2, None)
    assert why in " ".join(told.split())


def test_a_cluster_in_the_background_gets_them_too(monkeypatch, mxjob, tmp_path):
    commands = []

    def start(home, command, on_step):
        commands.append(command)
        raise AlreadyRunningError(1)

    monkeypatch.setenv("MXJOB_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(local_cluster.daemon, "start_detached", start)
    words = ["--cpus", "3.0", "--gpu-share", "2", "--resource", "x.com/a=1", "--resource", "x.com/b=2"]
    words += ["--node-label", "pool=gpus", "--legacy", "--restart-backoff", "0.5"]
    mxjob("local", "up", *words, "-d", "--")
    assert commands[0][commands[0].index("up") + 1 :] == words
