"""A report that can't be written says nothing about how its job ended."""

import json
import types

import pytest
from apiserver_fixtures import running_server
from cli_outcomes import outcome
from controller_fixtures import JOBS, gang

from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.mxjob import app
from mxnet_operator.cli.running.run_outputs import ReportError
from mxnet_operator.cli.verbs import run

NOW = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
@pytest.mark.parametrize("adopt", [["--adopt", "team"], []])
async def test_the_jobs_own_message_stays_and_with_adopt_the_command_may_be_tried_again(
    tmp_path, monkeypatch, capsys, adopt, state
):
    records = []
    monkeypatch.setattr(run, "leave", lambda code: None)
    exact = run.run_job

    async def recorded(manifest, target, options, record):
        records.append(record)
        return await exact(manifest, target, options, record)

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
    assert said.startswith("the report can't be written: ")
    assert records[0].message == "its own words"
    assert "its own words" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "message"),
    [(ReportError("no report"), "its own words"), (CommandError("the server is away"), "the server is away")],
)
def test_the_message_that_a_pipeline_reads_is_the_jobs_own(tmp_path, monkeypatch, error, message):
    def ended(manifest, target, options, record):
        record.message = "its own words"

    def fail(_):
        raise error

    monkeypatch.setattr(run, "run_job", ended)
    monkeypatch.setattr(run, "asyncio", types.SimpleNamespace(run=fail))
    (tmp_path / "job.json").write_text(json.dumps(gang()))
    with pytest.raises(type(error)):
        app(["run", "-f", str(tmp_path / "job.json"), "--output-dir", str(tmp_path / "out")], standalone_mode=False)
    assert (tmp_path / "out" / "message").read_text() == message
