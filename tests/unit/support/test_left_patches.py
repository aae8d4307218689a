"""What one test file replaces in the product must not reach the next."""

import logging

import pytest
from left_patches import found, own_logging, replaced
from simulator.run import run_seed

from mxnet_operator.api import job_formats


def test_a_function_that_was_replaced_and_not_put_back_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    before = found()
    monkeypatch.setattr(job_formats, "validate", lambda _: [])
    assert replaced(before, found()) == ["mxnet_operator.api.job_formats.validate"]
    monkeypatch.undo()
    assert replaced(before, found()) == []


def test_a_schedule_of_the_simulation_leaves_the_product_as_it_was() -> None:
    before = found()
    run_seed(0)
    assert replaced(before, found()) == []


def test_what_a_program_chooses_for_its_log_reaches_no_other_file() -> None:
    known, new = "mxnet_operator.controller.controller", "mxnet_operator.no_such_module"
    before = logging.root.level, logging.getLogger(known).level
    handler = logging.NullHandler()
    with own_logging():
        logging.root.setLevel(logging.CRITICAL)
        logging.root.addHandler(handler)
        for name in (known, new):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    assert (logging.root.level, logging.getLogger(known).level) == before
    assert logging.getLogger(new).level == logging.NOTSET
    assert handler not in logging.root.handlers
