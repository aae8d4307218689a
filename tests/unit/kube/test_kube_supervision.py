"""A task of the controller that meets a bug is started again, and the bug is logged and counted."""

from mxnet_operator.kube.supervision import keep_running


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
