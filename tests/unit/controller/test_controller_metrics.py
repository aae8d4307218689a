"""What /metrics says after a job's life, by the names that dashboards for Kubernetes controllers look for."""

from contextlib import asynccontextmanager

import aiohttp
from apiserver_fixtures import running_server
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, ControllerWorld, RecordingClient, gang, running_program, submitted, world
from prometheus_client.parser import text_string_to_metric_families
from waiting import SECONDS, until

from mxnet_operator.controller.metrics import Metrics
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.lease import LeaderElector

JOB_LABELS = {"job_namespace": "default", "framework": "mxnet"}


class Scrape:
    """The samples of one reading."""

    def __init__(self, text):
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples = [sample for family in self.families.values() for sample in family.samples]

    def value(self, name, /, **labels):
        """The sum over the samples with these labels."""
        found = [s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items()]
        assert found, (name, labels)
        return sum(found)


@asynccontextmanager
async def counted(tmp_path, **options):
    """A world whose controller counts."""
    metrics = Metrics()
    async with (
        running_server(tmp_path) as running,
        RecordingClient(load_credentials(str(running.kubeconfig)), observer=metrics.requested) as client,
    ):
        w = ControllerWorld(running.api, client, running.kubeconfig)
        w.running = running
        try:
            await w.start(observer=metrics, **options)
            metrics.watch(w.controller)
            w.metrics = metrics
            w.scrape = lambda: Scrape(metrics.render("")[0].decode())
            yield w
        finally:
            await w.stop()


def looks(seen):
    """How many reconciliations there were."""
    return seen.value("controller_runtime_reconcile_total", controller="mxjob-controller")


async def test_a_jobs_life_is_counted(tmp_path):
    async with counted(tmp_path) as w:
        await w.submit(gang())
        pods = await w.pods(5)
        await w.move(pods, "Running")
        await w.state("digits", "Running")
        await w.move(pods, "Succeeded", exit_code=0)
        await w.state("digits", "Succeeded")
        await w.submit(submitted(make_mxjob("bad").worker(1)))
        await w.pods(6)
        await w.move(["bad-worker-0"], "Failed", exit_code=3)
        await w.state("bad", "Failed")
        (await w.api.delete(f"{JOBS}/digits", {"propagationPolicy": "Background"})).ok()
        await until(lambda: "deleted_total{" in w.metrics.render("")[0].decode())
        await until(lambda: looks(w.scrape()) == w.scrape().value("workqueue_adds_total"))
        seen = w.scrape()
        for event, count in (("created", 2), ("successful", 1), ("failed", 1), ("deleted", 1)):
            assert seen.value(f"training_operator_jobs_{event}_total", **JOB_LABELS) == count, event
        jobs = [sample for sample in seen.samples if sample.name == "mxnet_operator_jobs"]
        assert {each.labels["state"]: each.value for each in jobs} == {"Failed": 1}
        assert seen.value("mxnet_operator_job_start_seconds_count", job_namespace="default") == 1
        assert seen.value("workqueue_depth") == 0
        assert looks(seen) == seen.value("controller_runtime_reconcile_time_seconds_count")
        assert looks(seen) == seen.value("workqueue_queue_duration_seconds_count")
        assert seen.value("controller_runtime_reconcile_errors_total") == seen.value(
            "controller_runtime_reconcile_total", result="error"
        )
        host = f"127.0.0.1:{w.running.port}"
        pods_created = seen.value("rest_client_requests_total", method="POST", code="201", host=host)
        assert pods_created == len([write for write in w.writes if write[0] == "POST"])
        assert seen.value("mxnet_operator_cache_objects", resource="mxjobs.kubeflow.org") == 1
        assert seen.value("mxnet_operator_watch_last_event_seconds", resource="pods") >= 0
        assert seen.value("process_resident_memory_bytes") > 0


async def test_a_training_is_in_gauges_while_its_job_runs(tmp_path):
    async with counted(tmp_path) as w:
        await w.submit(submitted(make_mxjob("digits").worker(1)))
        pods = await w.pods(1)
        await w.move(pods, "Running")
        await w.state("digits", "Running")
        prefix = "mxnet_operator_job_"

        def gauges():
            found = {each.name.removeprefix(prefix): each for each in w.scrape().samples if "job_name" in each.labels}
            return {name: (each.labels.get("metric"), each.value) for name, each in found.items()}

        async def shows(training, **expected):
            nothing = dict.fromkeys(("epoch", "progressPercentage", "estimatedRemainingSeconds", "metrics"))
            (await w.api.merge(f"{JOBS}/digits/status", {"status": {"training": nothing | training}})).ok()
            await until(lambda: gauges() == {name: (None, value) for name, value in expected.items()} | also)

        also = {}
        rest = {"slow_workers": 0, "stalled": 0}
        await shows(
            {"epoch": 7, "progressPercentage": 70, "estimatedRemainingSeconds": 180},
            **rest,
            epoch=7,
            progress_percentage=70,
            estimated_remaining_seconds=180,
        )
        also = {"metric": ("train_loss", 0.5)}
        await shows({"epoch": 8, "metrics": [{"name": "train_loss", "value": "0.5"}]}, **rest, epoch=8)
        also = {}
        stalled = [{"name": "worker-0", "seconds": 300, "place": "a.py:3", "function": "f"}]
        slow = [{"name": "worker-1", "node": "n", "percent": 20}]
        await shows({"stalled": stalled, "slowWorkers": slow}, slow_workers=1, stalled=1)
        await w.move(pods, "Succeeded", exit_code=0)
        await w.state("digits", "Succeeded")
        await until(lambda: gauges() == {})


async def test_jobs_are_not_counted_again_by_a_restarted_controller(tmp_path):
    async with world(tmp_path, start=False) as w:
        await w.start()
        await w.submit(gang())
        await w.pods(5)
        await w.state("digits", "Created")
        await w.stop()
        metrics = Metrics()
        await w.start(observer=metrics)
        await until(lambda: "success" in str(Scrape(metrics.render("")[0].decode()).samples))
        await w.submit(gang("next"))
        await w.state("next", "Created")
        await until(lambda: "job_namespace" in metrics.render("")[0].decode())
        seen = Scrape(metrics.render("")[0].decode())
        assert seen.value("training_operator_jobs_created_total", **JOB_LABELS) == 1


async def test_requests_that_were_never_answered_are_counted_as_such(tmp_path):
    async with counted(tmp_path) as w:
        await w.running.server.stop()
        await until(lambda: 'code="<error>"' in w.metrics.render("")[0].decode())


async def test_restarts_are_counted_and_suspensions_are_not(tmp_path):
    async with counted(tmp_path) as w:
        await w.submit(submitted(make_mxjob("digits").worker(1).restart("OnFailure")))
        await w.pods(1)
        await w.move(["digits-worker-0"], "Failed", exit_code=3)
        await w.eventually(JOBS, lambda jobs: jobs and jobs["digits"].get("status", {}).get("restarts") == 1)
        await w.submit(submitted(make_mxjob("paused").worker(1)))
        await w.state("paused", "Created")
        await w.move(["paused-worker-0"], "Running")
        await w.state("paused", "Running")
        (await w.api.merge(f"{JOBS}/paused", {"spec": {"runPolicy": {"suspend": True}}})).ok()
        job = await w.state("paused", "Suspended")
        assert job["status"]["restarts"] == 1
        await until(lambda: w.controller.queue.working == 0 and not len(w.controller.queue))
        assert w.scrape().value("training_operator_jobs_restarted_total", **JOB_LABELS) == 1
        (await w.api.merge(f"{JOBS}/paused", {"spec": {"runPolicy": {"suspend": False}}})).ok()
        await w.eventually(PODS, lambda pods: "paused-worker-0" in pods)
        await w.move(["paused-worker-0"], "Running")
        await w.state("paused", "Running")
        assert w.scrape().value("mxnet_operator_job_start_seconds_count") == 1, "a start is the first, and no other"


async def test_who_leads_is_seen(tmp_path):
    async with world(tmp_path, start=False) as w:
        metrics, elector = Metrics(), LeaderElector(w.client, "default", "mxnet-operator")
        await w.start(observer=metrics, elector=elector)
        metrics.watch(w.controller)

        def leads():
            return Scrape(metrics.render("")[0].decode()).value("leader_election_master_status", name="mxnet-operator")

        await until(lambda: leads() == 1)
        await w.stop()
        assert leads() == 0


async def test_the_program_serves_metrics_and_health_where_it_says(tmp_path):
    async with world(tmp_path, start=False) as w, running_program(w.running.kubeconfig) as program:
        metrics = (await program.says("metrics at ")).removeprefix("metrics at ")
        health = (await program.says("health at ")).removeprefix("health at ").removesuffix("/readyz")
        await program.says("leading")
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS)) as session:

            async def get(url):
                async with session.get(url) as reply:
                    return reply.status, reply.headers["Content-Type"], await reply.text()

            status, kind, text = await get(metrics)
            assert (status, kind.split(";")[0]) == (200, "text/plain")
            assert Scrape(text).value("leader_election_master_status") == 1
            for path in ("/readyz", "/livez", "/healthz"):
                assert await get(health + path) == (200, "text/plain; charset=utf-8", "ok\n")
            assert (await get(health + "/metrics"))[0] == 404
            await w.running.server.stop()
            status, _, text = await get(f"{health}/readyz")
            assert status == 503
            assert "API server" in text
            assert (await get(f"{health}/livez"))[0] == 200
