"""However `mxjob run` fails, its files say how the job ended; one that can't write its report, too."""

import errno
import json
import os
import sys
from itertools import product

import pytest
from apiserver_fixtures import running_server
from cli_outcomes import outcome
from controller_fixtures import JOBS, gang

from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.mxjob import app, main
from mxnet_operator.cli.running.run_outputs import ReportError
from mxnet_operator.cli.verbs import run

NOW = "2026-01-01T00:00:00Z"
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(autouse=True)
def _chosen(tmp_path, monkeypatch):
    """No cluster is started where one is chosen."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


REPORTS = {
    "on a full disk": (None, "the report can't be written: "),
    "that LaTeX should typeset": (RuntimeError("Failed to process string with tex"), "the report can't be drawn: "),
    "of odd figures": (ValueError("no such colour"), "the report can't be drawn: ValueError: no such colour"),
    "drawn on a full disk": (FULL, "the report can't be drawn: OSError: "),
    "of a character that UTF-8 lacks": ("<p>\ud800", "the report can't be written: "),
}
"""What drawing comes to (None: what it should), and the beginning of what is said."""


@pytest.mark.parametrize("case", REPORTS)
@pytest.mark.parametrize("ending", list(product([["--adopt", "team"], []], ["Succeeded", "Failed"])))
async def test_the_jobs_own_message_stays_and_with_adopt_the_command_may_be_tried_again(
    tmp_path, monkeypatch, capsys, ending, case
):
    adopt, state = ending
    drawn, words_of_case = REPORTS[case]
    if drawn is not None:
        draw = failing(drawn) if isinstance(drawn, Exception) else lambda *_: drawn
        monkeypatch.setattr("mxnet_operator.cli.running.run_outputs.html", draw)
    records = []
    monkeypatch.setattr(run, "leave", lambda code: None)
    exact = run.run_job

    async def recorded(manifest, target, options, record, objects):
        records.append(record)
        return await exact(manifest, target, options, record, objects)

    monkeypatch.setattr(run, "run_job", recorded)
    async with running_server(tmp_path) as running:
        manifest = gang()
        manifest["metadata"]["labels"] = {"team": "vision"}
        (tmp_path / "job.json").write_text(json.dumps(manifest))
        told = {"type": state, "status": "True", "reason": "r", "message": "its own words"}
        if adopt:
            (await running.api.post(JOBS, manifest)).ok()
        ended = {"conditions": [told], "completionTime": NOW}

        async def end(client, manifest, *rest, **options):
            job = (
                (await running.api.get(f"{JOBS}/digits")).body
                if adopt
                else (await running.api.post(JOBS, manifest)).ok()
            )
            return (await running.api.merge(f"{JOBS}/{job['metadata']['name']}/status", {"status": ended})).ok()

        monkeypatch.setattr("mxnet_operator.cli.running.run_job.create_or_adopt", end)
        monkeypatch.setattr("mxnet_operator.cli.running.run_job.create_job", end)
        words = ["run", "-f", str(tmp_path / "job.json"), *adopt, "--report", "/dev/full"]
        code, said = await outcome(monkeypatch, *words, "--no-logs", "--kubeconfig", str(running.kubeconfig))
    assert code is (Exit.TRY_AGAIN if adopt else Exit.FAILED)
    assert said.startswith(words_of_case)
    assert records[0].message == "its own words"
    assert "its own words" in capsys.readouterr().err


ENDS = {
    "a report": (ReportError("no report"), 1, 1, "its own words"),
    "an error that is said": (CommandError("the server is away", code=Exit.API), 3, 3, "the server is away"),
    "a mistake of ours": (ZeroDivisionError("of ours"), 70, 70, "its own words"),
    "a full disk": (FULL, 1, 75, "its own words"),
    "Ctrl-C before the job is made": (KeyboardInterrupt(), 130, 130, "its own words"),
}
"""By what a run ends, its exit code, that with --adopt, and the message that a pipeline reads if the job has ended."""


@pytest.mark.parametrize("beginning", list(product([[], ["--adopt", "team"]], [True, False])))
@pytest.mark.parametrize("end", ENDS)
def test_its_files_are_written_however_it_ends(tmp_path, monkeypatch, capfd, end, beginning):
    adopt, begun = beginning
    error, code, code_adopted, message = ENDS[end]
    manifest = gang()
    manifest["metadata"]["labels"] = {"team": "vision"}
    ended = {"conditions": [{"type": "Succeeded", "status": "True", "message": "its own words"}], "result": "0.98"}

    async def job_run(job, target, options, record, objects):
        if begun:
            record.seen({**job, "status": ended})
        raise error

    monkeypatch.setattr(run, "run_job", job_run)
    (tmp_path / "job.json").write_text(json.dumps(manifest))
    out, note = tmp_path / "out", tmp_path / "note"
    words = ["run", "-f", str(tmp_path / "job.json"), *adopt, "--output-dir", str(out), "--message-file", str(note)]
    monkeypatch.setattr(sys, "argv", ["mxjob", *words])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == (code_adopted if adopt else code)
    files = {each.name: each.read_text() for each in out.iterdir()}
    assert files.pop("message") == note.read_text()
    if begun:
        assert note.read_text() == message
        assert files == {"job": "digits", "state": "Succeeded", "result": "0.98", "files": ""}
    else:
        assert note.read_text()
        assert files == {"job": "digits", "state": "", "result": "", "files": ""}
    assert ("Traceback" in capfd.readouterr().err) is (end == "a mistake of ours")


@pytest.mark.parametrize(("adopt", "code"), [([], 1), (["--adopt", "team"], 75)])
def test_files_on_a_full_disk_are_said_and_end_no_run_as_if_the_job_had_succeeded(tmp_path, monkeypatch, adopt, code):
    manifest = gang()
    manifest["metadata"]["labels"] = {"team": "vision"}

    async def job_run(job, target, options, record, objects):
        (tmp_path / "out" / "job").unlink()
        (tmp_path / "out" / "job").symlink_to("/dev/full")
        return Exit.OK

    monkeypatch.setattr(run, "run_job", job_run)
    (tmp_path / "job.json").write_text(json.dumps(manifest))
    with pytest.raises(CommandError, match=r"^--output-dir: .*: No space left on device$") as unwritten:
        app(
            ["run", "-f", str(tmp_path / "job.json"), *adopt, "--output-dir", str(tmp_path / "out")],
            standalone_mode=False,
        )
    assert unwritten.value.code == code
