"""`mxjob run` without a manifest, and with options beside one: the same job as by every other door."""

import re

import pytest
import yaml
from descriptions import COMMON, MEANT, at

JOB = """\
apiVersion: kubeflow.org/v1
kind: MXJob
metadata: {name: good}
spec:
  jobMode: MXTrain
  mxReplicaSpecs:
    Worker:
      template: {spec: {containers: [{name: mxnet, image: "a:1", env: [{name: A, value: "1"}]}]}}
"""
COMMAND = ["--image", COMMON["image"], "--", *COMMON["command"]]
OPTIONS = {
    "nothing said": [],
    "two workers": ["--workers", "2"],
    "two workers that train alone": ["--workers", "2", "--servers", "0"],
    "one server": ["--workers", "4", "--servers", "1"],
    "GPUs of workers": ["--workers", "2", "--gpus-per-worker", "4"],
    "few nodes": ["--workers", "2", "--placement", "Pack"],
    "a registry": ["--workers", "2", "--image-pull-secret", "registry"],
}
"""Of the table of descriptions, those that options can say."""


@pytest.fixture
def run(mxjob):
    """Runs `mxjob run --dry-run`; returns its exit code, the manifest, and stderr."""

    def run(*args):
        code, out, err = mxjob("run", "--dry-run", *args)
        return code, yaml.safe_load(out), err

    return run


@pytest.mark.parametrize("case", OPTIONS)
def test_options_make_the_job_that_every_door_makes(run, case):
    code, manifest, err = run(*OPTIONS[case], *COMMAND)
    assert (code, err) == (0, "")
    meant = {path: value for path, value in MEANT[case][1].items() if "imagePullPolicy" not in path}
    assert {path: at(manifest, path) for path in meant} == meant


@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["alone", "with options"])
def test_what_the_server_sets_is_left_out_of_a_manifest(run, options, tmp_path):
    set_by_server = 'resourceVersion: "7", uid: u, creationTimestamp: "2026-01-01T00:00:00Z", generation: 2'
    (tmp_path / "job.yaml").write_text(f"{JOB}status: {{state: Failed}}\n".replace("good}", f"good, {set_by_server}}}"))
    code, manifest, err = run("-f", str(tmp_path / "job.yaml"), *options)
    assert (code, err, manifest["metadata"]) == (0, "", {"name": "good"})
    assert "status" not in manifest


def test_an_unknown_field_beside_options_is_a_mistake_unless_it_is_allowed(run, tmp_path):
    (tmp_path / "job.yaml").write_text(JOB.replace('image: "a:1"', 'image: "a:1", colour: red'))
    given = ("-f", str(tmp_path / "job.yaml"), "--workers", "2")
    code, _, err = run(*given)
    assert (code, "colour" in err) == (2, True)
    assert run(*given, "--allow-unknown-fields")[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--volume", "./data:/data", *COMMAND], "./data is a path of this machine"),
        (["--volume", "/data:/data:ro", *COMMAND], "on the local cluster: --mount /data:/data:ro\n"),
    ],
)
def test_a_path_of_this_machine_is_no_claim(run, words, said):
    code, _, err = run(*words)
    assert code == 2
    assert said in err


def test_what_every_pod_needs_of_a_cluster_has_an_option(run):
    options = ["--env", "LR=0.1", "--secret", "s3", "--config-map", "paths", "--volume", "images:/data:ro"]
    code, manifest, _ = run(*options, "--node-selector", "pool=gpus", "--queue-name", "q", *COMMAND)
    pod = at(manifest, "spec.mxReplicaSpecs.Worker.template.spec")
    assert code == 0
    assert pod["nodeSelector"] == {"pool": "gpus"}
    assert pod["volumes"] == [{"name": "images", "persistentVolumeClaim": {"claimName": "images"}}]
    container = pod["containers"][0]
    assert container["volumeMounts"] == [{"name": "images", "mountPath": "/data", "readOnly": True}]
    assert container["env"] == [{"name": "LR", "value": "0.1"}]
    assert container["envFrom"] == [{"secretRef": {"name": "s3"}}, {"configMapRef": {"name": "paths"}}]
    assert manifest["metadata"]["generateName"] == "train-"
    assert manifest["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "q"}


def test_a_folder_is_mounted_by_its_absolute_path_beside_a_claim_of_its_name(run, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    code, manifest, err = run("--mount", "data:/data:ro", "--volume", "data:/more", *COMMAND)
    assert (code, err) == (0, "")
    pod = at(manifest, "spec.mxReplicaSpecs.Worker.template.spec")
    claim, folder = pod["volumes"]
    assert claim == {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    assert folder["hostPath"] == {"path": str(tmp_path / "data"), "type": "Directory"}
    assert pod["containers"][0]["volumeMounts"] == [
        {"name": "data", "mountPath": "/more"},
        {"name": folder["name"], "mountPath": "/data", "readOnly": True},
    ]
    for word, said in {"nosuch:/data": "nosuch is no folder", "data": "'data' is not FOLDER:PATH"}.items():
        code, _, err = run("--mount", word, *COMMAND)
        assert (code, said in err) == (2, True), err
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "elsewhere"))
    code, _, err = run("--mount", "data:/data", *COMMAND)
    assert (code, "only the local cluster mounts folders of this machine" in err) == (2, True), err


def test_output_on_a_cluster_is_in_the_first_claim_that_can_be_written(run, tmp_path, monkeypatch):
    claims = ["--volume", "data:/data:ro", "--volume", "models:/models"]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "elsewhere"))
    code, manifest, err = run("--output", "out", *claims, *COMMAND)
    assert (code, err) == (0, "")
    container = at(manifest, "spec.mxReplicaSpecs.Worker.template.spec.containers")[0]
    folder = {"name": "models", "mountPath": "/mxjob/output", "subPathExpr": "$(MXJOB_POD)"}
    assert container["volumeMounts"][2:] == [folder]
    assert {"name": "MXJOB_OUTPUT_DIR", "value": "/mxjob/output"} in container["env"]
    code, _, err = run("--output", "out", *claims[:2], *COMMAND)
    assert (code, "name one: --volume CLAIM:/PATH" in err) == (2, True), err
    monkeypatch.setenv("KUBECONFIG", "")
    _, manifest, _ = run("--output", "out", *claims, *COMMAND)
    assert "env" not in at(manifest, "spec.mxReplicaSpecs.Worker.template.spec.containers")[0]


LONG = "a" * 63


@pytest.mark.parametrize(
    "claims",
    [
        ["data"],
        ["data.team-a", "data-team-a", "data.team.a"],
        [f"{LONG}a", f"{LONG}b", LONG],
        [f"{LONG}.a", ".".join(["claim"] * 42), "9"],
        ["same", "same"],
    ],
)
def test_every_name_of_a_claim_makes_a_volume_of_its_own_that_a_server_takes(run, claims):
    options = [word for index, claim in enumerate(claims) for word in ("--volume", f"{claim}:/{index}")]
    code, manifest, err = run(*options, *COMMAND)
    assert (code, err) == (0, "")
    pod = at(manifest, "spec.mxReplicaSpecs.Worker.template.spec")
    volumes = {each["name"]: each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"]}
    assert len(volumes) == len(pod["volumes"])
    assert all(re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) and len(name) <= 63 for name in volumes)
    mounted = {each["mountPath"]: volumes[each["name"]] for each in pod["containers"][0]["volumeMounts"]}
    assert mounted == {f"/{index}": claim for index, claim in enumerate(claims)}
    assert not re.fullmatch("[a-z]{1,63}", claims[0]) or claims[0] in volumes


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "no job given"),
        (["--workers", "2"], "image: Required value: give an image, or a manifest"),
        (["--node-selector", "A", *COMMAND], "--node-selector: 'A' is not NAME=VALUE"),
        (["--volume", "data", *COMMAND], "--volume: 'data' is not CLAIM:/PATH or CLAIM:/PATH:ro"),
        (["--volume", "data:/d:rw", *COMMAND], "--volume: 'data:/d:rw' is not CLAIM:/PATH"),
        (["--workers", "-1", *COMMAND], "workers: must be a whole number from 0 on"),
        (["--placement", "Spread", *COMMAND], "placement: must be one of Pack, Exclusive, is the string 'Spread'"),
        (["--name", "No Good", *COMMAND], "metadata.name"),
        (["--name", "caf\udce9", *COMMAND], r"name: isn't UTF-8: 'caf\udce9'"),
        (["--env", "A=\udce9", *COMMAND], r"env.A: isn't UTF-8: '\udce9'"),
        (["--secret", "\udce9", *COMMAND], r"secrets[0]: isn't UTF-8: '\udce9'"),
        ([*COMMAND, "caf\udce9"], r"isn't UTF-8: 'caf\udce9'"),
        (["--volume", "a:/x:ro", "--volume", "b:/x", *COMMAND], "volume_mounts[1].mountPath: is '/x', as is that of"),
        (["--volume", "a:/x", "--volume", "a:/x", *COMMAND], "volume_mounts[1].mountPath: is '/x', as is that of"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_the_code_of_wrong_usage(run, args, words):
    code, manifest, err = run(*args)
    assert (code, manifest) == (2, None)
    assert words in err


def test_a_dry_run_prints_the_text_of_a_variable_as_it_was_given(run):
    code, manifest, _ = run("--image", "i", "-e", "A=\u202ex", "--", "true")
    assert code == 0
    container = manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "A", "value": "\u202ex"}]


def test_variables_come_from_files_as_docker_reads_them_from_this_shell_and_from_options(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HERE", "of this shell")
    (tmp_path / "a.env").write_text("# comment\n\n  A=1 = one \nB='kept'\nHERE\nC=\nE= two \n")
    (tmp_path / "b.env").write_bytes("\ufeffA=2\r\nD=é\r\n".encode())
    files = ["--env-file", str(tmp_path / "a.env"), "--env-file", str(tmp_path / "b.env")]
    _, manifest, _ = run(*files, "--env", "B=3", "-e", "HERE", *COMMAND)
    env = at(manifest, "spec.mxReplicaSpecs.Worker.template.spec")["containers"][0]["env"]
    assert {each["name"]: each["value"] for each in env} == {
        "A": "2",
        "B": "3",
        "HERE": "of this shell",
        "C": "",
        "D": "é",
        "E": " two ",
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--env", "GONE"], "--env: GONE has no value, and this shell doesn't export it\ngive the value: GONE=VALUE"),
        (["--env", "=1"], "--env: '=1' is neither NAME=VALUE nor NAME"),
        (["--env-file", "gone.env"], "--env-file gone.env: No such file or directory"),
        (["--env-file", "bad.env"], "--env-file bad.env, line 2: 'export A=1' is neither NAME=VALUE nor NAME"),
        (["--env-file", "binary.env"], "--env-file binary.env: not text in UTF-8"),
    ],
)
def test_variables_that_can_not_be_had_are_refused(run, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.env").write_text("B=1\nexport A=1\n")
    (tmp_path / "binary.env").write_bytes(b"A=\xff")
    code, _, err = run(*options, *COMMAND)
    assert code == 2
    assert said in err
