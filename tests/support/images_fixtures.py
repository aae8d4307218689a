"""The MXNet and TVM images for tests, built once into the cache that all test runs of this checkout share."""

import asyncio
import os
from pathlib import Path

import pytest

from mxnet_operator.local.images import BASE_IMAGE, TVM_IMAGE, ImageStore

SHARED_HOME = Path(os.environ.get("MXJOB_HOME") or Path(__file__).parents[2] / ".mxjob")


@pytest.fixture(scope="session")
def image_store():
    """A store whose cache holds MXNet from one test run to the next."""
    return ImageStore(SHARED_HOME)


@pytest.fixture(scope="session")
def mxnet_python(image_store):
    """The Python of the built-in MXNet image."""
    return asyncio.run(image_store.ensure(image_store.resolve(BASE_IMAGE))).python


@pytest.fixture(scope="session")
def tvm_python(image_store):
    """The Python of the built-in TVM image."""
    return asyncio.run(image_store.ensure(image_store.resolve(TVM_IMAGE))).python
