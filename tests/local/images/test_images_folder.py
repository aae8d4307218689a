"""What of an image's folder reaches a container."""

import os

import pytest

from mxnet_operator.local.images import folder as folder_module
from mxnet_operator.local.images.folder import copy_folder
from mxnet_operator.local.images.store import ImageStore, ReadyImage
from mxnet_operator.local.images.uv_process import ImageError


@pytest.fixture
def source(tmp_path):
    source = tmp_path / "source"
    (source / "package").mkdir(parents=True)
    (source / "train.py").write_text("print()\n")
    (source / "package" / "model.py").write_text("")
    (source / "link.py").symlink_to("train.py")
    for ignored in (".git", "__pycache__", ".venv", "node_modules", "checkpoints"):
        (source / "package" / ignored).mkdir()
        (source / "package" / ignored / "file").write_text("")
    os.mkfifo(source / "pipe")
    return source


def test_files_and_links_are_copied_and_what_no_image_has_is_left_out(source, tmp_path):
    destination = tmp_path / "work"
    destination.mkdir()
    copy_folder(source, destination)
    found = sorted(str(path.relative_to(destination)) for path in destination.rglob("*"))
    assert found == ["link.py", "package", "package/model.py", "train.py"]
    assert (destination / "link.py").readlink().name == "train.py"


def test_a_folder_too_large_to_copy_for_each_container_is_refused(source, tmp_path, monkeypatch):
    monkeypatch.setattr(folder_module, "LIMIT_BYTES", 2**20)
    (source / ".git" / "pack").parent.mkdir()
    (source / ".git" / "pack").write_bytes(bytes(2**21))
    copy_folder(source, tmp_path / "fits")
    (source / "data.bin").write_bytes(bytes(2**20))
    with pytest.raises(ImageError, match=r"at most 1 MiB"):
        copy_folder(source, tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_an_image_without_a_folder_copies_nothing(tmp_path):
    ReadyImage(tmp_path, tmp_path, None).copy_folder(tmp_path / "work")
    assert not (tmp_path / "work").exists()


async def test_an_image_whose_folder_has_gone_is_refused_by_name(source, tmp_path):
    store = ImageStore(tmp_path / "home")
    image = store.add("digits:1.0", source)
    source.rename(tmp_path / "moved")
    with pytest.raises(ImageError, match=r"mxjob local image add digits:1.0 FOLDER"):
        await store.ensure(image)
