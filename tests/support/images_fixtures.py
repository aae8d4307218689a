"""The MXNet and TVM images for tests, built once into the cache that all test runs of this checkout share."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from mxnet_operator.local.images.store import BASE_IMAGE, TVM_IMAGE, ImageStore
from mxnet_operator.local.images.uv_process import ImageError

SHARED_HOME = Path(os.environ.get("MXJOB_HOME") or Path(__file__).parents[2] / ".mxjob")


@pytest.fixture(scope="session")
def image_store() -> ImageStore:
    """A store whose cache holds MXNet from one test run to the next."""
    return ImageStore(SHARED_HOME)


@pytest.fixture(scope="session")
def mxnet_python(image_store: ImageStore, pytestconfig: pytest.Config) -> Path:
    """The Python of the built-in MXNet image."""
    return _python_of(BASE_IMAGE, image_store, pytestconfig)


@pytest.fixture(scope="session")
def tvm_python(image_store: ImageStore, pytestconfig: pytest.Config) -> Path:
    """The Python of the built-in TVM image."""
    return _python_of(TVM_IMAGE, image_store, pytestconfig)


def say(config: pytest.Config, what: str) -> None:
    """Write a line to stderr past pytest's capture; a worker's stdout belongs to xdist."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print(what, file=sys.stderr, flush=True)


def _python_of(image: str, store: ImageStore, config: pytest.Config) -> Path:
    resolved = store.resolve(image)
    assert resolved is not None, f"no image {image} is built in"
    if not store.ready(resolved):
        say(config, f"Building the image {image}: it is downloaded, which takes a minute or two the first time")
    try:
        return asyncio.run(store.ensure(resolved)).python
    except ImageError as error:
        why_not = f"the image {image} can't be had: {error}"
    if os.environ.get("CI"):
        pytest.fail(why_not, pytrace=False)
    pytest.skip(why_not)
