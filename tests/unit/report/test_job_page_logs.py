"""A page shows the last lines of a log, however long it is."""

from mxnet_operator.local import job_pages as server
from mxnet_operator.local.job_pages import LAST_LINES, JobPages

EPOCH = "INFO:root:Epoch[%d] Validation-accuracy=0.5"
UID = "of-the-job"
POD = {
    "metadata": {
        "name": "a-worker-0",
        "labels": {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"},
        "ownerReferences": [{"uid": UID}],
    },
    "status": {"phase": "Running"},
}
JOB = {"metadata": {"name": "a", "namespace": "default", "uid": UID}, "status": {}}


class Client:
    """An API server with one job whose worker has written these lines."""

    def __init__(self, lines):
        self.lines = lines

    async def find(self, path):
        return JOB

    async def list(self, path, params):
        return {"items": [POD]}

    async def stream(self, path, params):
        chosen = self.lines[-int(params.get("tailLines", len(self.lines))) :]
        yield "".join(f"{line}\n" for line in chosen).encode()[: int(params["limitBytes"])]


async def shown(lines):
    view = await JobPages(Client(lines))._view("default", "a", UID)
    return server.html(view)


async def test_a_log_that_is_too_long_to_be_read_whole_is_shown_to_its_end(monkeypatch):
    monkeypatch.setattr(server, "_LOG_BYTES", 1000 * len(EPOCH % 1000))
    page = await shown([EPOCH % (1000 + number) for number in range(5000)])
    assert EPOCH % 5999 in page
    assert EPOCH % (6000 - LAST_LINES) in page
    assert EPOCH % (5999 - LAST_LINES) not in page
    assert "Earlier lines are not shown." in page
    assert "its later epochs are not in the curve" in page


async def test_a_log_that_was_read_whole_has_no_such_note():
    page = await shown([EPOCH % number for number in range(LAST_LINES + 7)])
    assert "7 earlier lines are not shown." in page
    assert "later epochs" not in page
