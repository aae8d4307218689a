"""What a resumed try knows of its job: by the record of its own generation, or else by its XComs."""

from types import SimpleNamespace
from typing import Any

import pytest

from mxnet_operator.api import names
from mxnet_operator.client.job_client import JobRef
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.job.task_memory import STORE_KEY, Record, TaskMemory

REF = JobRef(name="digits", namespace="ml", uid="u", plural=names.PLURAL)


class Kept(dict[str, Any]):
    """A task state store, or the XComs of a task instance."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value

    def task_instance(self, map_index: int | None) -> Any:
        def pull(*, task_ids: str, key: str, map_indexes: int) -> Any:
            return self.get(f"{task_ids}/{map_indexes}/{key}")

        def push(*, key: str, value: Any) -> None:
            self[f"train/{-1 if map_index is None else map_index}/{key}"] = value

        return SimpleNamespace(task_id="train", map_index=map_index, xcom_pull=pull, xcom_push=push)


@pytest.mark.parametrize("map_index", [None, 3])
@pytest.mark.parametrize("stores", [True, False], ids=["3.3", "before 3.3"])
def test_a_resumed_try_knows_the_job_its_manifest_and_its_page(stores: bool, map_index: int | None) -> None:
    store, xcoms = Kept() if stores else None, Kept()
    before = TaskMemory(xcoms.task_instance(map_index), store)
    before.record = Record(ref=REF, token="k", generation=2, manifest="kind: MXJob")
    before.remember(waits_in="trigger")
    before.note_page(REF, "https://jobs.example.com/digits")
    resumed = TaskMemory(xcoms.task_instance(map_index), store)
    assert resumed.recall(2) == REF
    assert resumed.page == "https://jobs.example.com/digits"
    assert (resumed.written.manifest, resumed.written.waits_in) == ("kind: MXJob", "worker")
    assert resumed.stored() == resumed.written


def test_the_record_of_a_task_that_was_cleared_meanwhile_is_neither_taken_nor_overwritten() -> None:
    store, xcoms = Kept(), Kept()
    before = TaskMemory(xcoms.task_instance(None), store)
    before.publish(REF)
    newer = TaskMemory(xcoms.task_instance(None), store)
    newer.record = Record(ref=JobRef(name="another", namespace="ml"), token="n", generation=3)
    newer.remember()
    kept = dict(store[STORE_KEY])
    resumed = TaskMemory(xcoms.task_instance(None), store)
    assert resumed.recall(2) == REF
    resumed.remember(phase="finished")
    assert store[STORE_KEY] == kept


def test_a_try_that_nothing_tells_its_job_fails() -> None:
    with pytest.raises(MXNetJobError, match="which job this is"):
        TaskMemory(Kept().task_instance(None), Kept()).recall(2)
