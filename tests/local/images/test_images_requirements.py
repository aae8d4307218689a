"""Packages added to a base image by plain requirements: locked with its pins, or refused with the pin in the way."""

import json

import pytest

from mxnet_operator.local.images import BASE_IMAGE, GPU_IMAGE, BuildError, ImageError, ImageStore, take_snapshot


@pytest.fixture
def store(tmp_path):
    return ImageStore(tmp_path / "home")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "train.py").write_text("import mxnet, six\n")
    return folder


def pins(tmp_path):
    """What is installed in each environment that is complete."""
    marks = (tmp_path / "home" / "images").glob("*/complete.json")
    return [json.loads(mark.read_text())["packages"] for mark in marks]


async def test_requirements_and_packages_are_added_to_those_of_the_base(store, folder, tmp_path, mxnet_python):
    (folder / "requirements.txt").write_text("mxnet>=1.5  # the image has it\nsix\n")
    image = store.add_snapshot(take_snapshot(folder), "script", BASE_IMAGE, ["tabulate"])
    assert not store.ready(image)
    await store.ensure(image)
    assert store.ready(image)
    (found,) = pins(tmp_path)
    assert (found["mxnet"], found["numpy"]) == ("1.9.1", "1.23.5")
    assert found.keys() >= {"six", "tabulate", "scipy"}


@pytest.mark.parametrize("asked", ["numpy>=1.24", "pandas>=3"])
async def test_a_conflict_fails_for_good_and_names_the_pin_that_causes_it(store, folder, mxnet_python, asked):
    (folder / "requirements.txt").write_text(f"{asked}\n")
    image = store.add("digits", folder)
    with pytest.raises(BuildError) as refused:
        await store.ensure(image)
    assert "mxjob/mxnet:1.9.1 needs numpy 1.23.5, the newest that MXNet 1.9.1" in str(refused.value)
    assert asked in str(refused.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("-r other.txt", "is an option"),
        ("--index-url https://index.invalid/simple", "UV_DEFAULT_INDEX"),
        ("git+https://example.invalid/a.git", "isn't a package of an index"),
        ("./wheels/a.whl", "isn't a package of an index"),
        ("mxnet==latest", "is no version of MXNet"),
    ],
)
def test_a_line_that_can_t_be_added_is_refused_where_the_image_is_added(store, folder, line, says):
    (folder / "requirements.txt").write_text(f"six\n{line}\n")
    with pytest.raises(ImageError, match=says):
        store.add("digits", folder)
    with pytest.raises(ImageError, match=says):
        store.add("digits", folder, BASE_IMAGE)
    (folder / "requirements.txt").unlink()
    with pytest.raises(ImageError, match=says):
        store.add_snapshot(take_snapshot(folder), "script", BASE_IMAGE, [line])


def test_the_mxnet_of_a_gpu_image_fulfils_a_requirement_of_mxnet(store, folder):
    (folder / "requirements.txt").write_text("mxnet\n")
    image = store.add_snapshot(take_snapshot(folder), "script", GPU_IMAGE, [])
    asked = store._packages(image)._input.splitlines()
    assert "mxnet-cu112==1.9.1" in asked
    assert "mxnet" not in asked


def test_a_locked_requirements_file_is_the_whole_of_a_snapshot_s_packages(store, folder):
    (folder / "requirements.txt").write_text("# python: 3.11\nsix==1.17.0 --hash=sha256:00\n")
    assert store.add_snapshot(take_snapshot(folder), "script", GPU_IMAGE, []).base is None


async def test_packages_that_can_not_be_fetched_now_are_tried_again(store, folder, mxnet_python, monkeypatch):
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(folder.parent / "cache"))
    (folder / "requirements.txt").write_text("six\n")
    with pytest.raises(ImageError, match="uv is set to stay offline") as refused:
        await store.ensure(store.add("digits", folder))
    assert not isinstance(refused.value, BuildError)
