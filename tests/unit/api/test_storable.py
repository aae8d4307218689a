"""A result is read as JSON up to the length that a job's log carries."""

import json

import pytest

from mxnet_operator.api.storable import LONGEST_JSON, LONGEST_TEXT, json_or_text, storable
from mxnet_operator.readers.long_result import LONGEST


def result_of(length: int) -> str:
    """A JSON object of that many characters, of a number and many losses."""
    text = json.dumps({"accuracy": 0.97, "losses": [0.5] * ((length - 60) // 5)})
    return text[:-1] + " " * (length - len(text)) + "}"


@pytest.mark.parametrize("length", [100, LONGEST_TEXT, LONGEST_TEXT + 1, LONGEST - 1, LONGEST])
def test_a_result_is_json_however_long_it_may_be(length: int) -> None:
    text = result_of(length)
    assert len(text) == length
    found = json_or_text(text)
    assert found == json.loads(text)
    assert storable(found) == found  # which cuts texts, and no list of numbers


def test_what_is_longer_stays_text() -> None:
    text = result_of(LONGEST_JSON + 1)
    assert json_or_text(text) == text
