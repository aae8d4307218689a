"""`mxjob local prune`: what no unfinished job needs is listed, asked about and deleted; the rest stays."""

import json
import os
import shutil
import time

import pytest

from mxnet_operator.cli.daemons import local_state
from mxnet_operator.cli.daemons.local_state import Use, delete, leftovers
from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.running.images import _drop_old_snapshots
from mxnet_operator.local.claims import open_lock, try_lock
from mxnet_operator.local.home import cluster_files
from mxnet_operator.local.images.environment import MARK
from mxnet_operator.local.images.snapshot import take_snapshot
from mxnet_operator.local.images.store import BASE_IMAGE, KEPT_SNAPSHOTS, ImageStore

SLEEP = "import time; open('model', 'w').close(); print('asleep', flush=True); time.sleep(1000)"
HOUR = 3601


@pytest.fixture
def own_images(home):
    """A home whose image cache is its own: what is deleted there is no other test's."""
    (home.home / "images").unlink()
    (home.home / "images").mkdir()
    return home


def test_ended_jobs_and_what_they_alone_used_go_and_running_ones_keep_all(own_images, tmp_path):
    home, old = own_images, time.time() - HOUR
    for name, code in (("keep", SLEEP), ("drop", "open('model', 'w').write('x' * 10**6)")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(code)
        done = home.mxjob("run", str(tmp_path / name / "train.py"), "--name", name, "--detach")
        assert done.returncode == 0, done.stderr
    home.wait_for("keep", "Running")
    home.wait_for("drop", "Succeeded")
    for each in (home.home / "snapshots").iterdir():
        os.utime(each, (old, old))
    (left_over := home.files.pods / "00000000-0000-0000-0000-000000000000").mkdir()
    claim = home.files.claims / "default/models"
    claim.mkdir(parents=True)

    asked = home.mxjob("local", "prune")

    assert asked.returncode == 1
    assert "  1 ended jobs with their logs and files: drop (1.0 MB)\n" in asked.stderr
    assert "nothing was deleted\nto delete without a question: mxjob local prune --force\n" in asked.stderr
    assert home.get("mxjob", "drop") is not None
    assert home.mxjob("local", "prune", "--force").stderr.splitlines()[-1].startswith("freed 1.")
    assert [job["metadata"]["name"] for job in home.find("mxjobs")] == ["keep"]
    assert [each.name.partition("-")[0] for each in (home.home / "snapshots").iterdir()] == ["keep"]
    assert [pod.name for pod in home.files.pods.glob("*-*")] == [home.get("pod", "keep-worker-0")["metadata"]["uid"]]
    assert (left_over.exists(), claim.exists()) == (False, True)
    assert list((home.home / "images").glob("*/venv"))
    assert home.mxjob("logs", "keep").stdout == "asleep\n"
    assert home.mxjob("local", "prune").stderr == f"nothing to delete in {home.home}\n"


def test_the_disk_use_is_shown_whether_the_cluster_runs_or_not(home):
    (home.files.pods / "a").mkdir(parents=True)
    (home.files.pods / "a/log").write_bytes(b"x" * 2_000_000)
    home.files.root.chmod(0o700)
    stopped = home.mxjob("local", "status")
    assert "pods 2.0 MB" in stopped.stderr
    assert "mxjob local prune deletes what no unfinished job needs\n" in stopped.stderr
    assert json.loads(home.mxjob("local", "status", "--json").stdout)["diskBytes"]["pods"] >= 2_000_000


@pytest.fixture
def store(tmp_path):
    return ImageStore(tmp_path / "home")


def snapshot(store, folder, content, age=HOUR):
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(content)
    image = store.add_snapshot(take_snapshot(folder), "p", BASE_IMAGE, [])
    os.utime(image.folder, (time.time() - age, time.time() - age))
    return image


def test_a_snapshot_stays_while_a_job_a_base_or_a_run_that_has_not_created_its_job_needs_it(store, tmp_path):
    used, base, new, old = (
        snapshot(store, tmp_path / "code", content, age)
        for content, age in (("used", HOUR), ("base", HOUR), ("new", 3000), ("old", HOUR))
    )
    (tmp_path / "other").mkdir()
    store.add("team/other:1", tmp_path / "other", base.name)
    files = cluster_files(tmp_path / "home")
    refused = store._snapshots / "p-refused"
    shutil.copytree(old.folder, refused)
    os.utime(refused, (0, 0))

    found = leftovers(files, store, Use(images=frozenset({used.name})))
    delete(files, store, found)

    assert found.snapshots == (refused, old.folder)
    assert [each.folder.exists() for each in (used, base, new, old)] == [True, True, True, False]
    assert (store.resolve(used.name), store.resolve(old.name)) == (used, None)


def test_environments_are_those_of_no_image_in_use_and_of_no_build(store, tmp_path):
    cache = tmp_path / "home/images"
    needed = store.resolve(BASE_IMAGE)
    environment = store._environment(store._packages(needed).resolved())
    for folder in (environment.root, cache / "other", cache / "building"):
        (folder / "venv").mkdir(parents=True)
        (folder / MARK).touch()
    found = store.unused_environments({BASE_IMAGE, "nobody/knows:it", "not a name"})
    assert found == [cache / "building", cache / "other"]

    with os.fdopen(open_lock(cache / "building.lock")) as held:
        assert try_lock(held.fileno())
        store.drop_environments(found)

    assert [(cache / each / MARK).exists() for each in ("building", "other")] == [True, False]
    assert (environment.root / MARK).exists()


def test_a_run_deletes_the_oldest_copies_but_for_those_of_unfinished_jobs(store, tmp_path, monkeypatch):
    made = [snapshot(store, tmp_path / "code", str(number), HOUR - number) for number in range(KEPT_SNAPSHOTS + 2)]
    monkeypatch.setenv("MXJOB_HOME", str(tmp_path / "home"))

    def unreachable(_):
        raise CommandError("the API server can't be reached")

    for use, left in ((unreachable, made), (lambda _: Use(images=frozenset({made[0].name})), [made[0], *made[2:]])):
        monkeypatch.setattr(local_state, "use_of", use)
        _drop_old_snapshots(store)
        assert [each for each in made if each.folder.exists()] == left
