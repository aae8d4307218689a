"""A task of the controller that meets a bug is started again, and the bug is logged and counted."""

import asyncio
import logging

from mxnet_operator.kube.supervision import keep_running


async def test_a_bug_in_a_task_is_told_counted_and_outlived(caplog):
    met, crashed = [], []
    go_on = asyncio.Event()

    async def buggy():
        met.append(1)
        if len(met) < 3:
            raise KeyError("nobody expected this")
        go_on.set()

    class AtOnce:
        def delay(self, failures):
            return 0.0

    await keep_running("reflector pods", buggy, on_crash=crashed.append, backoff=AtOnce())
    assert go_on.is_set()
    assert crashed == ["reflector pods"] * 2
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 2
    assert all(record.exc_info and "reflector pods" in record.getMessage() for record in errors)


async def test_failures_in_a_row_wait_longer_and_a_good_while_makes_them_count_anew():
    now, asked = [0.0], []
    runs = iter([1.0, 1.0, 1.0, 1000.0, 1.0, None])

    class Noted:
        def delay(self, failures):
            asked.append(failures)
            return 0.0

    async def run():
        took = next(runs)
        if took is not None:
            now[0] += took
            raise RuntimeError

    await keep_running("t", run, on_crash=lambda name: None, backoff=Noted(), clock=lambda: now[0])
    assert asked == [1, 2, 3, 1, 2]
