"""Naming, adding and removing images, and what is said about those that can't be had."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mxnet_operator.cli.mxjob import app
from mxnet_operator.local.images.store import BASE_IMAGE, GPU_IMAGE, TVM_IMAGE, Image, ImageStore, normalised
from mxnet_operator.local.images.uv_process import ImageError

LOCK = "# python: 3.11\nsix==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274\n"
BUILT_IN = [Image(BASE_IMAGE, None, None), Image(GPU_IMAGE, None, None), Image(TVM_IMAGE, None, None)]


@pytest.fixture
def store(tmp_path):
    return ImageStore(tmp_path / "home")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')\n")
    return folder


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("busybox", "busybox:latest"),
        ("docker.io/library/busybox", "busybox:latest"),
        ("docker.io/mxjob/digits:1.0", "mxjob/digits:1.0"),
        ("index.docker.io/mxjob/digits:1.0", "mxjob/digits:1.0"),
        ("registry.example.com:5000/team/digits:1.0", "registry.example.com:5000/team/digits:1.0"),
        ("localhost:5000/digits", "localhost:5000/digits:latest"),
        ("a-b/c__d/e.f:V_1.2-rc", "a-b/c__d/e.f:V_1.2-rc"),
        ("digits@sha256:" + "0" * 64, "digits@sha256:" + "0" * 64),
        ("digits:1.0@sha256:" + "0" * 64, "digits@sha256:" + "0" * 64),
    ],
)
def test_the_spellings_of_a_name_are_one(name, short):
    assert normalised(name) == short
    assert normalised(short) == short


@pytest.mark.parametrize(
    "name",
    ["", "Digits", "digits:", "digits:1.0:2", "/digits", "digits/", "a//b", "-a", "di gits", "digits@sha256:12", "é"],
)
def test_what_is_no_image_name_is_refused(name):
    with pytest.raises(ImageError, match="isn't the name of an image"):
        normalised(name)


def test_the_mxnet_and_tvm_images_are_built_in(store):
    assert store.list() == BUILT_IN
    assert store.resolve("docker.io/mxjob/mxnet:1.9.1") == Image(BASE_IMAGE, None, None)


def test_a_folder_becomes_an_image_on_mxnet_and_is_found_by_another_process(store, folder, tmp_path):
    store.add("docker.io/mxjob/digits:1.0", folder)
    expected = Image("mxjob/digits:1.0", folder, BASE_IMAGE)
    assert ImageStore(tmp_path / "home").resolve("mxjob/digits:1.0") == expected
    assert store.list()[len(BUILT_IN) :] == [expected]


def test_adding_a_name_again_gives_it_the_new_folder(store, folder, tmp_path):
    store.add("digits", folder)
    store.add("digits", tmp_path)
    assert [image.folder for image in store.list()[len(BUILT_IN) :]] == [tmp_path]


def test_a_removed_image_is_unknown(store, folder):
    store.add("digits", folder)
    store.remove("digits:latest")
    assert store.resolve("digits") is None


def test_an_unknown_image_comes_with_the_command_that_adds_it(store):
    assert store.resolve("team/other:2") is None
    message = store.how_to_add("team/other:2")
    assert "mxjob local image add team/other:2 FOLDER" in message
    assert BASE_IMAGE in message


@pytest.mark.parametrize("name", ["mxjob/mxnt:1.9.1", "mxjob/mxnet:1.9", "mxjob/mxnet"])
def test_a_misspelt_image_is_answered_with_the_nearest(store, name):
    assert f"Did you mean {BASE_IMAGE}? " in store.how_to_add(name)


def test_an_image_that_only_shares_its_folder_s_name_is_not_meant(store):
    assert "Did you mean" not in store.how_to_add("mxjob/digits:1.0")


def test_a_malformed_name_is_unknown_and_said_to_be_malformed(store):
    assert store.resolve("Not An Image") is None
    assert "isn't the name of an image" in store.how_to_add("Not An Image")


def test_a_locked_requirements_file_makes_a_base_of_its_own(store, folder):
    (folder / "requirements.txt").write_text(LOCK)
    assert store.add("team/six:1", folder).base is None
    assert store.add("team/on-six:1", folder, "team/six:1").base == "team/six:1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LOCK.replace("# python: 3.11\n", ""), "# python: 3.11"),
        ("# python: 3.11\nsix\n", "`six` lacks an exact version"),
        ("# python: 3.11\nsix==1.17.0\n", "`six==1.17.0` lacks a hash"),
        ("# python: 3.11\n-r other.txt\n", "-r isn't allowed"),
        ("# python: 3.11\n", "lists no packages"),
    ],
)
def test_a_requirements_file_that_is_no_lock_is_refused_with_the_way_to_lock_it(store, folder, text, says):
    (folder / "requirements.txt").write_text(text)
    with pytest.raises(ImageError, match=r"requirements\.txt") as refused:
        store.add("digits", folder)
    assert says in str(refused.value)


def test_a_given_base_wins_over_the_folder_s_requirements_file(store, folder):
    (folder / "requirements.txt").write_text("six\n")
    assert store.add("digits", folder, BASE_IMAGE).base == BASE_IMAGE


@pytest.mark.parametrize(
    ("name", "base", "says"),
    [
        (BASE_IMAGE, None, "built in"),
        ("Digits", None, "isn't the name"),
        ("digits@sha256:" + "0" * 64, None, "digest"),
        ("digits", "nobody/knows:1", "no image nobody/knows:1"),
    ],
)
def test_what_can_t_be_added_is_refused(store, folder, name, base, says):
    with pytest.raises(ImageError, match=says):
        store.add(name, folder, base)
    assert store.list() == BUILT_IN


def test_a_refused_change_of_an_image_leaves_the_older_one(store, folder, tmp_path):
    store.add("digits", folder)
    (folder / "requirements.txt").write_text("-e .\n")
    for changed in (folder, tmp_path / "nowhere"):
        with pytest.raises(ImageError):
            store.add("digits", changed)
    assert (store.resolve("digits").folder, store.resolve("digits").base) == (folder, BASE_IMAGE)


def test_a_missing_folder_is_refused(store, tmp_path):
    with pytest.raises(ImageError, match="isn't a folder"):
        store.add("digits", tmp_path / "nowhere")


def test_what_is_not_there_or_in_use_or_built_in_can_t_be_removed(store, folder):
    (folder / "requirements.txt").write_text(LOCK)
    store.add("team/six:1", folder)
    store.add("team/on-six:1", folder, "team/six:1")
    for name, says in ((BASE_IMAGE, "built in"), ("other", "no image"), ("team/six:1", "base of team/on-six:1")):
        with pytest.raises(ImageError, match=says):
            store.remove(name)


def test_a_damaged_list_of_images_is_named(store, folder, tmp_path):
    store.add("digits", folder)
    (tmp_path / "home" / "images.json").write_text("{")
    with pytest.raises(ImageError, match=r"images\.json"):
        store.list()


ADD_FIFTY = """
import sys
from pathlib import Path
from mxnet_operator.local.images.store import ImageStore

home, folder, first = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(first), 100, 2):
    ImageStore(Path(home)).add(f"digits:{number}", Path(folder))
"""


def test_images_added_by_two_processes_at_once_are_all_kept(folder, tmp_path):
    home = tmp_path / "home"
    adders = [
        subprocess.Popen(
            [sys.executable, "-c", ADD_FIFTY, home, folder, first], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for first in ("0", "1")
    ]
    for adder in adders:
        assert adder.stdout.readline() == b"ready\n"
    for adder in adders:
        adder.stdin.write(b"go\n")
        adder.stdin.flush()
    assert [adder.communicate() and adder.returncode for adder in adders] == [0, 0]
    assert len(ImageStore(home).list()) == len(BUILT_IN) + 100


def test_the_command_that_the_message_gives_does_add_the_image(store, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("MXJOB_HOME", str(tmp_path / "home"))
    command = re.search(r"`mxjob (.*)`", store.how_to_add("team/other:2"))[1].replace("FOLDER", str(folder)).split()
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert store.resolve("team/other:2").folder == folder


def test_the_libraries_of_nvidias_wheels_are_where_the_loader_is_to_look(store):
    environment = store._environment(store._packages(store.resolve(GPU_IMAGE)).start)
    assert environment.library_path() == ""
    folders = [environment.root / f"venv/lib/python3.11/site-packages/nvidia/{name}/lib" for name in ("cudnn", "nccl")]
    for folder in folders:
        folder.mkdir(parents=True)
    assert environment.library_path() == f"{folders[0]}:{folders[1]}"
    assert {"mxnet-cu112", "nvidia-cudnn-cu11", "numpy"} <= environment.lock.pins.keys()
