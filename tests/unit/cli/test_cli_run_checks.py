"""What `mxjob run` looks at before it creates a job: a training isn't lost for want of a report."""

import pytest

from mxnet_operator.cli.verbs import run as run_command

JOB = """\
apiVersion: kubeflow.org/v1
kind: MXJob
metadata: {name: good}
spec:
  jobMode: MXTrain
  mxReplicaSpecs:
    Worker:
      template: {spec: {containers: [{name: mxnet, image: "mxjob/mxnet:1.9.1"}]}}
"""


@pytest.fixture
def run(monkeypatch, mxjob, tmp_path):
    """Runs `mxjob run --report REPORT`; returns its exit code, stderr, and how many jobs it would have created."""
    created = []

    async def run_job(job, *_):
        created.append(job)
        return 0

    monkeypatch.setattr(run_command, "run_job", run_job)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))  # no cluster is started where one is chosen

    def run(report, *words, text=JOB):
        (tmp_path / "job.yaml").write_text(text)
        code, _, err = mxjob("run", "-f", str(tmp_path / "job.yaml"), "--report", str(report), *words)
        return code, err, len(created)

    return run


def test_a_report_that_can_be_written_lets_the_job_be_created(run, tmp_path):
    (tmp_path / "old.html").write_text("old")
    assert run(tmp_path / "report.html") == (0, "", 1)
    assert run(tmp_path / "old.html") == (0, "", 2)
    assert (tmp_path / "old.html").read_text() == "old"
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("report", "problem"),
    [("folder", "it is a folder"), ("none/report.html", "there is no folder"), ("job.yaml/a", "")],
)
def test_where_no_report_can_be_no_job_is_created(run, tmp_path, report, problem):
    (tmp_path / "folder").mkdir()

    code, err, created = run(tmp_path / report)

    assert (code, created) == (2, 0)
    assert f"--report {tmp_path / report}: {problem}" in err.replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (JOB.replace("  jobMode: MXTrain\n", ""), (), "spec.jobMode: Required value"),
        (JOB, ("--replica", "server-0"), "the job has no replica server-0\nit has worker-0"),
        (JOB, ("--timeout", "soon"), "'soon' is no duration"),
        ("{apiVersion: v1, kind: Secret2}\n---\n" + JOB, (), "v1 Secret2 can't be created with a job"),
    ],
)
def test_what_cannot_run_is_refused_before_a_job_is_created(run, tmp_path, text, words, said):
    code, err, created = run(tmp_path / "report.html", *words, text=text)
    assert (code, created) == (2, 0)
    assert said in err


def test_resume_needs_a_folder_that_outlives_a_pod(mxjob):
    code, _, err = mxjob("run", "--image", "any", "--resume", "train.py")
    assert code == 2
    assert "--mount ./models:/models" in err
