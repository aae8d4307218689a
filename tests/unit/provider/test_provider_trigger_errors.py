"""What a trigger fails with: Airflow stores the whole traceback in its database, causes included."""

import logging
import traceback

import pytest

from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.triggers.connection import storable_errors


@pytest.mark.parametrize("said", ["a\0b", "\ud800", "x" * 10**6], ids=["NUL", "surrogate", "long"])
def test_a_trigger_fails_with_nothing_that_a_database_refuses(said, caplog):
    failure = RuntimeError(said)
    failure.__cause__ = ValueError(said)
    with (
        caplog.at_level(logging.ERROR),
        pytest.raises(MXNetJobError, match="RuntimeError: ") as caught,
        storable_errors(logging.getLogger("trigger")),
    ):
        raise failure

    stored = "".join(traceback.format_exception(caught.value))
    assert "\0" not in stored
    assert len(stored) < 40_000
    stored.encode()
    assert "ValueError" in caplog.text
