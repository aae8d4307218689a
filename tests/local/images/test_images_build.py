"""Environments are built once, completely or not at all; a failure says why. One small package keeps it quick."""

import asyncio
import signal
import subprocess
import sys

import pytest

from mxnet_operator.local.images.store import BASE_IMAGE, ImageStore
from mxnet_operator.local.images.uv_process import BuildError, Ended, ImageError, ProgressReader, build_error

HASH = "4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274"
PYTHON = ".".join(map(str, sys.version_info[:2]))
LOCK = f"# python: {PYTHON}\nsix==1.17.0 --hash=sha256:{HASH}\n"

ENSURE = """
import asyncio, sys
from pathlib import Path
from mxnet_operator.local.images.store import ImageStore
async def main():
    store = ImageStore(Path(sys.argv[1]))
    await store.ensure(store.resolve("team/six:1"), lambda progress: print(progress.stage, flush=True))
asyncio.run(main())
"""


@pytest.fixture
def store(tmp_path):
    return ImageStore(tmp_path / "home")


@pytest.fixture
def image(store, tmp_path):
    return add(store, tmp_path, LOCK)


def add(store, tmp_path, lock):
    folder = tmp_path / "script"
    folder.mkdir(exist_ok=True)
    (folder / "requirements.txt").write_text(lock)
    return store.add("team/six:1", folder)


def roots(tmp_path):
    return [path for path in (tmp_path / "home" / "images").iterdir() if path.is_dir()]


def imports(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


async def test_the_image_has_its_packages_and_not_ours(store, image):
    ready = await store.ensure(image)
    assert ready.folder == image.folder
    assert ready.bin_dir == ready.python.parent
    assert imports(ready.python, "six")
    assert not imports(ready.python, "msgspec")


async def test_progress_goes_from_nothing_to_all_and_never_back(store, image):
    steps = []
    assert not store.ready(image)
    await store.ensure(image, steps.append)
    assert store.ready(image)
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert (steps[0].done, steps[-1].done) == (0, steps[-1].total)
    assert {step.image for step in steps} == {"team/six:1"}


async def test_a_ready_image_needs_no_work(store, image):
    steps = []
    first = await store.ensure(image)
    assert await store.ensure(image, steps.append) == first
    assert steps == []


async def test_tasks_that_ask_at_once_build_once(store, image, tmp_path):
    steps = [[] for _ in range(3)]
    readies = await asyncio.gather(*(store.ensure(image, mine.append) for mine in steps))
    assert len(set(readies)) == 1
    assert sorted("check" in {step.stage for step in mine} for mine in steps) == [False, False, True]
    assert len(roots(tmp_path)) == 1


async def test_processes_that_ask_at_once_build_once(image, tmp_path):
    command = [sys.executable, "-c", ENSURE, str(tmp_path / "home")]
    processes = [await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE) for _ in range(2)]
    outputs = [(await process.communicate())[0].decode() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted("check" in output for output in outputs) == [False, True]


async def test_a_build_that_was_killed_is_done_again(store, image, tmp_path):
    """Killed as it begins to install: the environment is there, but nothing may use it."""
    command = [sys.executable, "-c", ENSURE, str(tmp_path / "home")]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    async for line in process.stdout:
        if line.strip() == b"download":
            break
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert roots(tmp_path) and not store.ready(image)
    assert imports((await store.ensure(image)).python, "six")


async def test_leftovers_of_a_build_are_not_taken_for_an_image(store, image, tmp_path):
    ready = await store.ensure(image)
    (root,) = roots(tmp_path)
    (root / "complete.json").unlink()
    (root / "leftover").touch()
    assert await store.ensure(image) == ready
    assert not (root / "leftover").exists()


async def test_an_image_whose_python_was_uninstalled_is_built_again(store, image):
    ready = await store.ensure(image)
    ready.python.unlink()
    ready.python.symlink_to("/nowhere/python")
    assert imports((await store.ensure(image)).python, "six")


async def test_cancelling_ends_uv_and_the_next_build_succeeds(store, image, tmp_path, monkeypatch):
    """An index that accepts a connection and never answers keeps uv busy; the connection's end is uv's."""
    asked, gone = asyncio.Event(), asyncio.Event()

    async def never_answer(reader, writer):
        asked.set()
        await reader.read()
        gone.set()
        writer.close()

    index = await asyncio.start_server(never_answer, "127.0.0.1", 0)
    with monkeypatch.context() as environment:
        environment.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
        environment.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{index.sockets[0].getsockname()[1]}/simple")
        building = asyncio.create_task(store.ensure(image))
        await asked.wait()
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building
        await gone.wait()
        index.close()
    assert not store.ready(image)
    assert imports((await store.ensure(image)).python, "six")


async def test_a_wrong_hash_is_refused_with_what_to_do(store, tmp_path):
    image = add(store, tmp_path, LOCK.replace(HASH, "0" * 64))
    with pytest.raises(BuildError) as refused:
        await store.ensure(image)
    assert "Hash mismatch for `six==1.17.0`" in str(refused.value)
    assert "isn't the one that was locked" in str(refused.value)
    assert not store.ready(image)


async def test_a_python_that_nobody_has_is_named_with_what_to_do(store, tmp_path):
    image = add(store, tmp_path, LOCK.replace(f"python: {PYTHON}", "python: 3.99"))
    with pytest.raises(BuildError) as refused:
        await store.ensure(image)
    assert "Python 3.99, which the image needs" in str(refused.value)
    assert "`python3.99` is on PATH" in str(refused.value)


async def test_an_index_that_can_t_be_reached_is_named_with_what_to_do(store, image, tmp_path, monkeypatch):
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(ImageError) as refused:
        await store.ensure(image)
    assert "127.0.0.1:9" in str(refused.value)
    assert "can't be reached" in str(refused.value)
    assert not isinstance(refused.value, BuildError)


async def test_a_package_that_fails_to_import_is_no_image(tmp_path, monkeypatch):
    monkeypatch.setattr("mxnet_operator.local.images.environment._first_import", lambda lock: "import numpy")
    store = ImageStore(tmp_path / "home")
    image = add(store, tmp_path, LOCK)
    with pytest.raises(BuildError, match=r"`import numpy` fails in it \(exit code 1\)[\s\S]*ModuleNotFoundError"):
        await store.ensure(image)
    assert not store.ready(image)


async def test_a_build_that_failed_for_good_is_not_done_again_by_its_process_until_the_lock_changes(store, tmp_path):
    image, steps = add(store, tmp_path, LOCK.replace(HASH, "0" * 64)), []
    for _ in range(2):
        with pytest.raises(BuildError, match="Hash mismatch"):
            await store.ensure(image, steps.append)
    assert [step.stage for step in steps].count("python") == 1
    add(store, tmp_path, LOCK)
    assert imports((await store.ensure(image)).python, "six")


async def test_a_home_that_can_t_be_written_is_an_error_of_the_image(tmp_path):
    (tmp_path / "home").write_text("a file where the folder should be")
    store = ImageStore(tmp_path / "home" / "below")
    with pytest.raises(ImageError, match="can't be"):
        await store.ensure(store.resolve(BASE_IMAGE))


def test_a_gpu_image_without_a_driver_names_the_one_for_cpus(tmp_path):
    error = "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"
    assert str(build_error("It failed", Ended(1, (error,)), tmp_path)).endswith(
        "the MXNet for CPUs is mxjob/mxnet:1.9.1."
    )


def test_a_full_disk_is_explained_with_the_folder_to_move(tmp_path):
    ended = Ended(2, ("error: failed to write", "No space left on device (os error 28)"))
    error = build_error("It failed", ended, tmp_path)
    assert not isinstance(error, BuildError)
    message = str(error)
    assert "MXJOB_HOME" in message
    assert str(tmp_path) in message
    assert "    No space left on device" in message


def test_the_bar_follows_the_mebibytes_of_what_is_downloaded():
    steps = []
    reader = ProgressReader("i", steps.append)
    for line in (
        "Resolved 13 packages in 84ms",
        "Downloading numpy (16.0MiB)",
        "Downloading mxnet (48.0MiB)",
        " Downloaded numpy",
        " Downloaded mxnet",
        "Prepared 13 packages in 1.06s",
        " + six==1.17.0",
    ):
        reader.line(line)
    assert [step.done for step in steps] == [5, 5, 5, 23, 80, 80]
    assert steps[2].detail == "mxnet (48 MiB), numpy (16 MiB)"
    assert steps[3].detail == "mxnet (48 MiB)"


def test_the_bar_shows_what_pip_resolves_and_installs():
    steps = []
    reader = ProgressReader("i", steps.append)
    reader.packages = 3
    of_pip = ("Looking in indexes: x", "Collecting mxnet==1.5.1", "  Downloading mxnet-1.5.1-py2.whl (25.4 MB)")
    for line in of_pip:
        reader.resolving(line.replace("mxnet-", "http://127.0.0.1:1/mxnet/mxnet-"))
    for line in (*of_pip, "Collecting six", "  Downloading six-1.0.whl (512 kB)", "Collecting a"):
        reader.line(line)
    reader.line("  Downloading a-1.0.whl (60.0 MB)")
    reader.line("Installing collected packages: six, a, mxnet")
    assert [(step.stage, step.done, step.detail) for step in steps] == [
        ("resolve", 0, "Collecting mxnet==1.5.1"),
        ("resolve", 0, "Downloading mxnet-1.5.1-py2.whl (25.4 MB)"),
        ("download", 5, "mxnet-1.5.1-py2.whl (25 MiB)"),
        ("download", 78, "six-1.0.whl (0 MiB)"),
        ("download", 78, "a-1.0.whl (60 MiB)"),
        ("install", 80, "3 packages"),
    ]


def test_the_tvm_image_imports_tvm_with_its_rpc(tvm_python):
    assert imports(tvm_python, "tvm.s_tir.meta_schedule, tvm.exec.rpc_tracker, tvm.exec.rpc_server")


def test_the_mxnet_image_imports_mxnet_and_scikit_learn(mxnet_python):
    assert imports(mxnet_python, "mxnet, sklearn")
