"""The dashboard of a running local cluster, and `mxjob dashboard`: who may open it, its pages, and their changes."""

import contextlib
import http.cookiejar
import json
import os
import subprocess
import urllib.error
import urllib.request

import pytest
from builders import make_mxjob
from cluster_fixtures import MXJOB
from controller_fixtures import submitted
from waiting import SECONDS, eventually


@pytest.fixture(scope="module")
def job(local_cluster):
    script = "echo 'Epoch[0] Validation-accuracy=0.5'; echo '<script>alert(1)</script>'; sleep 600 # --epochs 10"
    builder = make_mxjob("paged").worker(2, image="mxjob/mxnet:1.9.1", command=["sh", "-c", script])
    local_cluster.create(submitted(builder))
    yield local_cluster.wait_for("paged", "Running")
    local_cluster.mxjob("delete", "paged")


def status(cluster):
    return json.loads(cluster.mxjob("local", "status", "--json").stdout)


def browser():
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))


def refused(address, **headers):
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=SECONDS)
    with refusal.value as answer:
        return answer.code, answer.read().decode()


def events(address, opener):
    """The server-sent events of a page, as (event, data)."""
    with contextlib.closing(opener.open(address, timeout=SECONDS)) as stream:
        event = ""
        for line in stream:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                event = value
            elif name == "data":
                yield event, json.loads(value)


def first(found, wanted):
    return next(data for event, data in found if wanted(event, data))


def test_the_address_with_the_token_opens_the_list_and_a_cookie_takes_its_place(local_cluster, job):
    opener, address = browser(), status(local_cluster)["dashboard"]
    base, _, token = address.partition("/?token=")
    with opener.open(address, timeout=SECONDS) as page:
        assert page.url == f"{base}/"
        assert f'<a href="/jobs/default/paged/{job["metadata"]["uid"]}">paged</a>' in page.read().decode()
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
        assert page.headers["Cache-Control"] == "no-store"
    assert refused(f"{base}/")[0] == 401
    assert refused(f"{base}/?token={token[:-1]}x")[0] == 401
    assert refused(f"{base}/changes")[0] == 401


@pytest.mark.sampled
@pytest.mark.parametrize("host", ["jobs.example.com", "jobs.example.com:80", "127.0.0.1.example.com"])
def test_a_name_that_another_site_has_rebound_to_loopback_is_refused(local_cluster, host):
    assert refused(status(local_cluster)["dashboard"], Host=host)[0] == 403


def test_the_uid_opens_a_job_s_page_and_nothing_else(local_cluster, job):
    address = job["status"]["url"]
    with urllib.request.urlopen(address, timeout=SECONDS) as page:
        text = page.read().decode()
    assert '<span class="state running">Running</span>' in text
    assert 'data-replica="worker-1"' in text
    assert "All jobs" not in text
    for wrong in (address[:-1] + "-", address.replace("paged", "another"), address.replace("default", "another")):
        code, answer = refused(wrong)
        assert (code, "paged" in answer) == (404, False)


@pytest.mark.parametrize("secret", ["uid", "token"])
def test_neither_uid_nor_token_is_in_the_arguments_of_a_process(local_cluster, job, secret):
    """Those are for every user of the machine to read."""
    token = status(local_cluster)["dashboard"].partition("token=")[2]
    value = {"uid": job["metadata"]["uid"], "token": token}[secret]
    assert not any(value in command for command in local_cluster.processes().values())


def test_a_job_s_page_gets_its_curve_and_the_log_of_the_chosen_replica(local_cluster, job):
    address = job["status"]["url"]
    changes = events(f"{address}/changes?log=worker-1", browser())
    log = first(changes, lambda event, _: event == "log")
    assert "<script>alert(1)</script>\n" in log
    charts = first(changes, lambda event, data: event == "part" and data[0] == "charts" and "polyline" not in data[1])
    assert "Validation accuracy" in charts[1]
    changes.close()
    assert refused(f"{address}/changes?log=worker-2")[0] == 404
    with urllib.request.urlopen(f"{address}/logs/worker-0", timeout=SECONDS) as download:
        assert download.read().decode().startswith("Epoch[0] Validation-accuracy=0.5\n")
        assert download.headers["Content-Disposition"] == 'attachment; filename="paged-worker-0.log"'


def test_the_list_and_the_command_line_say_how_far_a_training_is(local_cluster, job):
    opener = browser()
    address = status(local_cluster)["dashboard"]
    opener.open(address, timeout=SECONDS).close()
    with contextlib.closing(events(f"{address.partition('?')[0]}changes", opener)) as listed:
        first(listed, lambda event, data: event == "part" and ">epoch 0 of 10<" in data[1])
    assert local_cluster.mxjob("get", "paged", "-o", "wide").stdout.endswith("epoch 0 of 10\n")
    assert "\nTraining:   epoch 0 of 10  Validation-accuracy 0.5\n" in local_cluster.mxjob("describe", "paged").stdout


def test_an_open_page_sees_a_job_come_end_and_go(local_cluster):
    opener = browser()
    address = status(local_cluster)["dashboard"]
    opener.open(address, timeout=SECONDS).close()
    listed = events(f"{address.partition('?')[0]}changes", opener)

    def shows(text):
        return lambda event, data: event == "part" and data[0] == "jobs" and text in data[1]

    command = ["sh", "-c", "echo 'ValueError: <b>' >&2; exit 3"]
    local_cluster.create(submitted(make_mxjob("brief").worker(1, image="mxjob/mxnet:1.9.1", command=command)))
    first(listed, shows(">brief</a>"))
    failed = first(listed, shows('class="failed"'))
    assert "<b>" not in failed[1]
    page = events(f"{local_cluster.wait_for('brief', 'Failed')['status']['url']}/changes?log=worker-0", browser())
    head = first(page, lambda event, data: event == "part" and data[0] == "head")
    assert "<code>ValueError: &lt;b&gt;</code>" in head[1]
    local_cluster.mxjob("delete", "brief")
    first(page, lambda event, _: event == "end")
    first(listed, lambda event, data: event == "part" and data[0] == "jobs" and ">brief</a>" not in data[1])
    for each in (listed, page):
        each.close()


def test_the_command_serves_the_same_pages_and_only_with_its_token(local_cluster, job):
    command = [*MXJOB, "dashboard", "--kubeconfig", str(local_cluster.files.kubeconfig)]
    environment = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, env=environment) as serving:
        try:
            address = serving.stdout.readline().strip()
            opener = browser()
            with opener.open(address, timeout=SECONDS) as page:
                assert ">paged</a>" in page.read().decode()
            path = f"/jobs/default/paged/{job['metadata']['uid']}"
            base = address.partition("/?")[0]
            with opener.open(base + path, timeout=SECONDS) as page:
                assert "All jobs" in page.read().decode()
            assert refused(base + path)[0] == 401
        finally:
            serving.terminate()
        assert serving.wait(SECONDS) == 143


def test_the_commands_say_where_the_pages_are(local_cluster, job):
    found = status(local_cluster)
    where = {key: job["metadata"][key] for key in ("name", "namespace", "uid")}
    assert job["status"]["url"] == found["jobPages"].format(**where)
    again = local_cluster.mxjob("local", "status").stdout
    assert f"dashboard  {found['dashboard']}\n" in again
    (line,) = [line for line in local_cluster.mxjob("describe", "paged").stdout.splitlines() if "Page:" in line]
    assert line.split() == ["Page:", job["status"]["url"]]
    manifest = submitted(make_mxjob("said").worker(1, image="mxjob/mxnet:1.9.1", command=["true"]))
    done = local_cluster.mxjob("run", "-f", "-", stdin=json.dumps(manifest))
    address = eventually(lambda: local_cluster.wait_for("said", "Succeeded")["status"]["url"])
    assert f"page: {address}\n" in done.stderr
