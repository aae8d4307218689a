"""`mxjob run train.py`: which folder and command it means, and what is said where it can't run."""

import functools
import json
import re
import shlex
import sys

import jinja2
import pytest
import yaml
from typer.testing import CliRunner

from mxnet_operator.api.job_formats import submission_errors
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.mxjob import app
from mxnet_operator.cli.running import failure_hints, images
from mxnet_operator.cli.running.script import Script
from mxnet_operator.local.images.snapshot import take_snapshot
from mxnet_operator.local.images.store import ImageStore

OTHER_CLUSTER = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "prod",
    "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://prod.invalid:6443"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with scripts, which is the current one; no cluster is chosen."""
    folder = tmp_path / "My Project"
    (folder / "common").mkdir(parents=True)
    for name in ("train.py", "score.py", "common/fit.py", "prepare.sh"):
        (folder / name).write_text("print()\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MXJOB_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(failure_hints, "has_nvidia_driver", bool)
    return folder


@pytest.fixture
def run(mxjob):
    """Runs `mxjob run`; returns its exit code, stdout and stderr."""
    return functools.partial(mxjob, "run")


def container(manifest, replica_type="Worker"):
    return manifest["spec"]["mxReplicaSpecs"][replica_type]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("words", "command", "name"),
    [
        (["train.py"], ["python", "train.py"], "train-"),
        (["train.py", "--workers", "2", "--", "--epochs", "5"], ["python", "train.py", "--epochs", "5"], "train-"),
        (["--", "python", "-u", "train.py", "-v"], ["python", "-u", "train.py", "-v"], "train-"),
        (["common/fit.py"], ["python", "common/fit.py"], "fit-"),
        (["./score.py"], ["python", "score.py"], "score-"),
        (["prepare.sh"], ["bash", "prepare.sh"], "train-"),
        (["--", "bash", "-c", "python gone.py"], ["bash", "-c", "python gone.py"], "python-gone-"),
        (["--", "/bin/sh", "-ec", "sh gone.sh"], ["sh", "-ec", "sh gone.sh"], "train-"),
        (["--", "bash", "-o", "pipefail", "prepare.sh"], ["bash", "-o", "pipefail", "prepare.sh"], "train-"),
        (["--", "python", "-m", "common.fit", "gone.py"], ["python", "-m", "common.fit", "gone.py"], "gone-"),
        (["--", "python", "-W", "ignore", "train.py"], ["python", "-W", "ignore", "train.py"], "train-"),
        (["--", "/usr/bin/python3", "train.py"], ["python", "train.py"], "train-"),
        (["--", ".venv/bin/python", "train.py"], ["python", "train.py"], "train-"),
        (["--", "python3.11", "-u", "train.py"], ["python", "-u", "train.py"], "train-"),
        (["--", "env", "A=1", "python", "train.py"], ["env", "A=1", "python", "train.py"], "train-"),
    ],
)
def test_a_script_runs_in_an_image_of_the_current_folder(folder, run, words, command, name):
    code, out, err = run(*words, "--dry-run") if "--" not in words else run("--dry-run", *words)
    assert code == 0, err
    manifest = yaml.safe_load(out)
    assert (container(manifest)["command"], manifest["metadata"]["generateName"]) == (command, name)
    image = ImageStore(folder.parent / "state").resolve(container(manifest)["image"])
    assert image.name.startswith("run/my-project:")
    assert (image.folder / "common" / "fit.py").exists()
    assert f"image {image.name}: 4 files, 32 bytes of {folder}\n" in err


def test_in_the_home_folder_the_image_is_of_the_scripts_folder(folder, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, out, _ = run(f"{folder.name}/common/fit.py", "--dry-run")
    assert container(yaml.safe_load(out))["command"] == ["python", "fit.py"]


def test_the_size_of_the_first_download_is_said_before_it(folder, run, monkeypatch):
    def stop(*_):
        raise CommandError("built")

    monkeypatch.setattr(images, "build_image", stop)
    monkeypatch.setattr(failure_hints, "has_nvidia_driver", lambda: True)
    monkeypatch.setattr("mxnet_operator.local.images.store.installed_interpreter", lambda _: sys.executable)
    for options, size in (
        ((), "(MXNet is some 50 MB the first time)"),
        (("--gpus-per-worker", "1"), "(MXNet and CUDA's libraries are some 2 GB the first time)"),
        (("--gpus-per-worker", "1", "--as-of", "2019-06"), "(MXNet is 150 to 710 MB the first time)"),
        (("--as-of", "2019-06"), "(MXNet is some 50 MB the first time)"),
    ):
        assert f"{size}\nerror: built\n" in run("train.py", *options)[2], options


def test_what_is_left_out_is_said(folder, run):
    (folder / ".dockerignore").write_text("common/\n")
    _, _, err = run("train.py", "--dry-run")
    assert "left out by .dockerignore: common" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["trian.py"], "did you mean train.py?"),
        (["nothing.py"], "scripts there: score.py, train.py; for one of them: mxjob run score.py"),
        (["--", "python", "trian.py"], "did you mean train.py?"),
        (["common"], "for one of them: mxjob run common/fit.py"),
        (["job.yaml"], "mxjob run -f job.yaml"),
        (["-f", "train.py"], "a script needs no -f: mxjob run train.py"),
        (["notes.ipynb"], "jupyter nbconvert --to script notes.ipynb"),
        (["trian"], "mxjob run --image IMAGE -- trian"),
        (["--", "/usr/bin/python3", "trian.py"], "did you mean train.py?"),
        (["--", "bash", "-x", "trian.sh"], "trian.sh: there is no such file"),
        (["--", "A=1", "python", "train.py"], "mxjob run --env A=1 -- python train.py"),
        (
            ["python train.py --lr 0.1", "--workers", "2"],
            "unquote it: mxjob run --workers 2 -- python train.py --lr 0.1",
        ),
        (["train.py --lr '0 1'"], "unquote it: mxjob run train.py -- --lr '0 1'"),
        (["my train.py"], "my train.py: there is no such file"),
        (
            ["train.py", "--epochs", "3", "--workers=2", "-n", "a", "-x"],
            "mxjob run train.py --workers=2 -n a -- --epochs 3 -x",
        ),
        (["train.py", "--worker", "2"], "No such option: --worker (Possible options: --workers)"),
        (
            ["old.py", "--workers", "2", "--", "-x"],
            "the script is Python 2: mxjob run old.py --workers 2 --python 2.7 -- -x",
        ),
        (["train.py", "--gpus-per-worker", "1"], "lacks NVIDIA's driver"),
        (["train.py", "--pip", "six", "--image", "a"], "--pip adds packages to the image of a script's folder"),
        (["train.py", "--workers", "-1"], "workers: must be a whole number from 0 on"),
    ],
)
def test_a_mistake_is_refused_with_its_remedy_before_anything_is_made(folder, run, tmp_path, words, says):
    if "old.py" in words:
        (folder / "old.py").write_text("print 'a'\n")
    code, _, err = run(*words)
    assert code == 2
    assert says in err
    assert not (tmp_path / "state").exists()


def test_a_folder_without_scripts_says_how_to_name_one(folder, run, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    code, _, err = run("train.py")
    assert code == 2
    assert "train.py: there is no such file" in err
    assert "mxjob run FOLDER/train.py" in err


def test_a_package_that_can_not_be_added_is_refused(folder, run):
    code, _, err = run("train.py", "--pip", "./mine.whl", "--dry-run")
    assert code == 1
    assert "isn't a package of an index" in err


@pytest.fixture
def prod(tmp_path, monkeypatch, folder):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(OTHER_CLUSTER))
    monkeypatch.setenv("KUBECONFIG", str(path))


def test_another_cluster_gets_a_dockerfile_and_the_commands(folder, run, prod, tmp_path):
    (folder / "requirements.txt").write_text("pandas\n")
    code, _, err = run("train.py", "--pip", "six", "--workers", "2", "--", "--epochs", "5")
    assert code == 2
    image = "REGISTRY/my-project:1"
    commands = [shlex.split(line) for line in err.splitlines() if line.startswith("  ")]
    assert commands[1:] == [
        ["docker", "build", "-t", image, str(folder)],
        ["docker", "push", image],
        ["mxjob", "run", "train.py", "--workers", "2", "--image", image, "--", "--epochs", "5"],
    ]
    file = (folder / "Dockerfile").read_text().splitlines()
    assert file[1] == "FROM mxjob/mxnet:1.9.1"
    assert any("-c /tmp/base.txt -r requirements.txt six" in line for line in file)
    assert file[-1] == 'CMD ["python", "train.py", "--epochs", "5"]'
    assert not (tmp_path / "state").exists()


def test_the_dockerfile_copies_what_the_local_cluster_s_image_has_and_no_keys(folder, run, prod):
    (folder / ".gitignore").write_text("# mine\ndata/\n/logs\n!data/small.csv\n")
    for name in ("data/a.rec", "data/small.csv", "sub/data/b.rec", "logs/a", "sub/logs/a", "sub/.env", "id_rsa"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    run("train.py")

    taken = {each for each in take_snapshot(folder).files if "/" in each or each == "id_rsa"}

    rules = (folder / ".dockerignore").read_text()
    assert (taken, "**/.env\n" in rules, "**/id_rsa\n" in rules) == (
        {"common/fit.py", "data/a.rec", "data/small.csv", "sub/data/b.rec", "logs/a", "sub/logs/a"},
        True,
        True,
    )
    (folder / "Dockerfile").unlink()
    (folder / ".dockerignore").write_text("mine\n")
    run("train.py")
    assert ((folder / "Dockerfile").exists(), (folder / ".dockerignore").read_text()) == (True, "mine\n")


def test_what_is_withheld_is_said_with_what_includes_it(folder, run):
    (folder / ".env").touch()
    (folder / "data").symlink_to("/")
    _, _, err = run("train.py", "--dry-run")
    assert (
        "left out: .env, data (a link to /: --mount); to include one, write a line such as !.env into .gitignore\n"
        in err
    )


def test_the_environment_that_a_project_asks_for_is_said_before_an_image_is_made(folder, run, prod):
    (folder / "setup.py").write_text("setup(python_requires='<3.10')")
    _, _, err = run("train.py")
    asks, _, rest = err.partition("setup.py asks for Python <3.10, ")
    assert not asks
    assert "mxjob run train.py --python 3.9\n" in rest
    assert "Dockerfile written" in rest


def test_a_failed_script_of_a_project_gets_the_environment_that_the_project_asks_for(folder, run, monkeypatch):
    async def fails(*_):
        return Exit.FAILED

    monkeypatch.setattr("mxnet_operator.cli.verbs.run.run_job", fails)
    monkeypatch.setattr("mxnet_operator.cli.daemons.local_cluster.ensure_running", lambda: None)
    monkeypatch.setattr(images, "build_image", lambda *_: None)
    (folder / "setup.py").write_text("setup(python_requires='<3.10')")
    assert run("train.py")[2].splitlines()[-1].endswith("Python 3.11: mxjob run train.py --python 3.9")


def test_workers_of_an_mxnet_that_can_not_train_together_are_said(folder, run, monkeypatch):
    monkeypatch.setattr("mxnet_operator.local.images.store.installed_interpreter", lambda _: sys.executable)
    of_3 = "MXNet {} can't send an optimizer to its servers on Python 3, so that several Workers fail: {}; or, with"
    for options, says in (
        ("--mxnet 1.0.0", of_3.format("1.0.0", "mxjob run train.py --workers 2 --mxnet 1.0.0 --dry-run --python 2.7")),
        ("--mxnet 0.12", " MXNet 1.1: mxjob run train.py --workers 2 --dry-run --mxnet 1.1.0\n"),
        ("--as-of 2017-12-01", " MXNet 1.1: mxjob run train.py --workers 2 --dry-run --as-of 2018-02-28\n"),
        (
            "--mxnet 0.10.0",
            "no dist_* kvstore, so that no Workers train together: mxjob run train.py --workers 2 --dry",
        ),
        ("--mxnet 0.10.0 --python 2.7", "no dist_* kvstore"),
        ("--mxnet 0.12 --python 2.7", None),
        ("--mxnet 1.1.0", None),
    ):
        code, _, err = run("train.py", "--workers", "2", *options.split(), "--dry-run")
        assert code == 0, err
        assert says in err if says else "Workers" not in err, (options, err)
    assert "Workers" not in run("train.py", "--mxnet", "1.0.0", "--dry-run")[2]
    (folder / "requirements.txt").write_text("mxnet==1.0.0\n")
    assert "with MXNet 1.1: write mxnet==1.1.0 for mxnet==1.0.0\n" in run("train.py", "--workers=2", "--dry-run")[2]


def test_a_dockerfile_is_never_overwritten_and_not_written_by_a_dry_run(folder, run, prod):
    run("train.py", "--dry-run")
    assert not (folder / "Dockerfile").exists()
    (folder / "Dockerfile").write_text("FROM mine\n")
    code, _, err = run("train.py")
    assert code == 2
    assert "Dockerfile found, and left as it is" in err
    assert (folder / "Dockerfile").read_text() == "FROM mine\n"


def test_a_context_that_does_not_exist_is_the_mistake_that_is_named(folder, run, prod):
    code, _, err = run("train.py", "--context", "dev")
    assert code == 3
    assert "no context dev: the contexts are prod" in err
    assert not (folder / "Dockerfile").exists()


def test_a_context_without_a_kubeconfig_is_the_mistake_that_is_named(folder, run, tmp_path):
    (tmp_path / "state" / "cluster").mkdir(parents=True)
    (tmp_path / "state" / "cluster" / "state.json").touch()  # there was a local cluster
    code, _, err = run("train.py", "--context", "dev")
    assert code == 3
    assert "no context dev: no kubeconfig at ~/.kube/config" in err
    assert "without --context, mxjob uses the local cluster" in err


def test_init_keeps_arguments_that_airflow_argo_and_docker_would_change(folder, run, monkeypatch):
    odd = ["{{ y }}", "{% z %}", "${#a[@]}", "{{{", "a\nb", 'q"\\', "é"]
    app(["init", "train.py", "--", *odd], standalone_mode=False)
    text = (folder / "mxjob.yaml").read_text()
    (line,) = (each for each in (folder / "Dockerfile").read_text().splitlines() if each.startswith("CMD "))
    workflow = (folder / "mxjob_workflow.yaml").read_text()
    given = {each["name"]: each["value"] for each in yaml.safe_load(workflow)["spec"]["arguments"]["parameters"]}
    assert container(yaml.safe_load(text))["command"] == ["python", "train.py", *odd]
    assert container(yaml.safe_load(jinja2.Template(text).render()))["command"] == ["python", "train.py", *odd]
    assert json.loads(line.removeprefix("CMD ")) == ["python", "train.py", *odd]
    assert json.loads(given["command"]) == ["python", "train.py", *odd]
    assert "{{" not in given["command"]


def test_python_2_is_not_refused_in_an_environment_of_its_time(folder, monkeypatch):
    (folder / "old.py").write_text("print 'a'\n")
    for options in (["--python", "2.7"], ["--as-of=2017"], ["--mxnet", "1.1.0"]):
        monkeypatch.setattr(sys, "argv", ["mxjob", "run", "old.py", *options])
        failure_hints.refuse_what_must_fail(Script.of(["old.py"]), needs_driver=False)
    monkeypatch.setattr(sys, "argv", ["mxjob", "run", "old.py", "--", "--python", "2.7"])
    with pytest.raises(CommandError, match=r"--python 2\.7 -- --python 2\.7"):
        failure_hints.refuse_what_must_fail(Script.of(["old.py"]), needs_driver=False)


def test_what_runs_in_another_way_than_it_says_is_said(folder):
    assert (
        Script.of([".venv/bin/python", "train.py"]).warnings[0].startswith(".venv/bin/python: the image's Python runs")
    )
    assert Script.of(["train.py"]).warnings == Script.of(["python", "train.py"]).warnings == []


def test_init_writes_files_that_validate_and_keeps_those_that_exist(folder, run, tmp_path):
    (folder / "mxjob_dag.py").write_text("mine\n")
    app(["init", "train.py", "--workers", "2"], standalone_mode=False)
    assert (folder / "mxjob_dag.py").read_text() == "mine\n"
    manifest = yaml.safe_load((folder / "mxjob.yaml").read_text())
    assert submission_errors(manifest) == []
    image = ImageStore(tmp_path / "state").resolve(container(manifest)["image"])
    assert (image.name, image.folder) == ("my-project:1.0", folder)
    assert (folder / "Dockerfile").exists()
    (workflow,) = yaml.safe_load_all((folder / "mxjob_workflow.yaml").read_text())
    given = {each["name"]: each["value"] for each in workflow["spec"]["arguments"]["parameters"]}
    assert json.loads(given["command"]) == container(manifest)["command"]


@pytest.mark.parametrize("word", ["ps", "ls", "submit", "rm", "status", "cancel"])
def test_a_word_of_another_command_line_leads_to_ours(word):
    shown = CliRunner().invoke(app, [word])
    assert shown.exit_code == 2
    ours = {"ps": "get", "ls": "get", "submit": "run", "rm": "delete", "cancel": "stop", "status": "describe"}[word]
    assert f"Did you mean '{ours}'?" in shown.output


def completions(*words):
    environment = {"_MXJOB_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": shlex.join(["mxjob", *words])}
    return CliRunner().invoke(app, [], prog_name="mxjob", env=environment).output


def test_images_are_completed(folder):
    ImageStore(folder.parent / "state").add("team/digits:1", folder)
    assert "team/digits" in completions("run", "--image", "team")
    assert "mxjob/mxnet" in completions("local", "image", "build", "mxjob")


def test_the_help_of_run_begins_with_the_basic_options_and_flags_have_no_type(folder):
    shown = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"}).output
    assert "<bool>" not in shown
    _, basic, more = re.split("─ (?:Options|More about the job) ─", shown, maxsplit=2)
    assert all(each in basic for each in ("--workers", "--pip", "--dry-run", "--output"))
    assert all(each in more for each in ("--servers ", "--adopt ", "--kubeconfig "))
