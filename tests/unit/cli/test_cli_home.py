"""A folder for local state that can't be used is said to be so in one line, by every command of `mxjob local`."""

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from mxnet_operator.cli.daemons.home import usable_home
from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.manifests import read_text
from mxnet_operator.cli.mxjob import app
from mxnet_operator.local.images.snapshot import take_snapshot
from mxnet_operator.local.images.uv_process import ImageError

COMMANDS = {
    "up": ["up"],
    "up --detach": ["up", "--detach"],
    "down": ["down"],
    "status": ["status"],
    "kubeconfig": ["kubeconfig"],
}


def said(*words):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(CommandError) as caught:
        patch.setattr("sys.argv", ["mxjob", "local", *words])
        app(["local", *words], standalone_mode=False)
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("below", ["", "/home"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_in_the_place_of_a_folder(tmp_path, monkeypatch, command, below):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MXJOB_HOME", f"{tmp_path}/file{below}")
    message = said(*COMMANDS[command])
    assert message.startswith(f"{tmp_path}/file{below} can't be used: ")
    assert message.endswith("name another folder: MXJOB_HOME")


def test_a_full_disk_is_named_with_its_home_and_another_full_file_is_not(tmp_path, monkeypatch):
    full, disk = OSError(errno.ENOSPC, "No space left on device"), {"free": 0}
    monkeypatch.setenv("MXJOB_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(**disk))
    with pytest.raises(CommandError) as caught, usable_home():
        raise full
    assert caught.value.message == (
        f"the disk of {tmp_path} is full: make room (mxjob local prune), or name another folder: MXJOB_HOME"
    )
    disk["free"] = 2**30
    with pytest.raises(OSError, match="No space"), usable_home():  # as of stdout, which is somewhere else
        raise full


def test_a_copy_of_a_folder_onto_a_full_disk_names_the_disk_and_not_the_folder(tmp_path, monkeypatch):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/a").write_text("a")

    def copy2(*_):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "code/a"))

    monkeypatch.setattr(shutil, "copy2", copy2)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(ImageError, match=f"the disk of {tmp_path}/home/snapshots is full"):
        take_snapshot(tmp_path / "code").copy(tmp_path / "home/snapshots/c-1")


def test_a_folder_whose_name_is_no_utf_8_is_no_image(tmp_path, monkeypatch):
    monkeypatch.setenv("MXJOB_HOME", f"{tmp_path}/home")
    odd = os.fsencode(tmp_path) + b"/d\xff"
    Path(os.fsdecode(odd)).mkdir()
    assert said("image", "add", "a/b:1", os.fsdecode(odd)).endswith("isn't UTF-8.")


def test_a_report_of_too_long_a_name_is_a_wrong_usage(tmp_path):
    words = ["run", "--image", "a", "--report", f"{tmp_path}/{'a' * 300}", "--", "true"]
    with pytest.raises(CommandError, match="File name too long") as caught:
        app(words, standalone_mode=False)
    assert caught.value.code == 2


def test_a_manifest_on_a_closed_stdin_is_a_wrong_usage(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(CommandError, match="stdin is closed"):
        read_text("-")
