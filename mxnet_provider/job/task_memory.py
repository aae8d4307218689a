"""What Airflow keeps of a task's MXJob: a record for later processes and tries, and XComs for tasks downstream."""

from typing import Any, Final, Literal

import msgspec

from mxnet_operator.api.storable import storable
from mxnet_operator.client.job_client import JobRef
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.links.mxnet_job import job_url

STORE_KEY: Final = "mxnet_job"
"""Renaming it would cut running tasks off from their jobs."""
_XCOMS: Final = ("job_name", "job_namespace", "job_uid")
_URL_XCOM: Final = "job_url"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a task's job in the task state store, from before its creation to its end.

    Fields that a later release adds have defaults, and none is ever taken away: tasks outlive upgrades.
    """

    ref: JobRef
    token: str
    generation: int
    """The task's `max_tries`, which Airflow sets anew when a task is cleared, and not when it retries by itself: to the
    tries that there were and its `retries`, which is what it was before where `retries` was lowered by so many."""
    retries: int | None = None
    """The task's `retries` in the try that last waited for the job; None in records of earlier releases."""
    last_try: int = 0
    """The try that last waited for the job."""
    phase: Literal["submitting", "submitted", "finished"] = "submitting"
    try_number: int = 1
    waits_in: Literal["", "worker", "trigger"] = ""
    """Where the job was waited for last; empty in records of earlier releases."""
    deadline: float | None = None
    """When the try that waits for it runs out of time, in seconds since the epoch."""
    reattached_at: float | None = None
    """When the try that waits for it found it, in seconds since the epoch; None where it created it."""
    redeferrals: int = 0
    page: str = ""
    """Address of the job's page, as its status gave it."""
    manifest: str = ""
    """The job as it was created, as Airflow's page shows it."""
    outcome: dict[str, Any] | None = None
    """The event with which the waiting ended."""
    v: int = 1


class TaskMemory:
    """Record and XComs of the job of one try.

    Without `store`, Airflow's task state store (3.3), the record is an XCom, which outlives a deferral only.
    """

    def __init__(self, ti: Any, store: Any) -> None:
        self.record: Record | None = None
        self.page = ""
        """Address of the job's page, once its status gave one."""
        self.outlives_tries = store is not None
        self._ti = ti
        self._store = store

    @property
    def written(self) -> Record:
        if self.record is None:
            raise RuntimeError("there is no record yet")
        return self.record

    def stored(self) -> Record | None:
        key = STORE_KEY
        return load(self._xcom(key) if self._store is None else self._store.get(key))

    def remember(self, **changes: Any) -> None:
        """Store the record with these fields changed; nothing where there is none."""
        if self.record is None:
            return
        self.record = msgspec.structs.replace(self.record, **changes)
        value = storable(msgspec.to_builtins(self.record))
        if self._store is None:
            self._ti.xcom_push(key=STORE_KEY, value=value)
        else:
            self._store.set(STORE_KEY, value)

    def recall(self, generation: int) -> JobRef:
        """Return the job that the try has deferred, by the record or the XComs; MXNetJobError if neither names it."""
        record = self.stored()
        if record is not None and record.generation == generation:
            self.record, self.page = record, record.page
            self.remember(waits_in="worker")
            return record.ref
        name, namespace, uid = map(self._xcom, _XCOMS)
        if not (name and namespace and uid):
            raise MXNetJobError("Neither Airflow's task state store nor the task's XComs say which job this is.")
        self.page = self._xcom(_URL_XCOM) or ""
        return JobRef(name=name, namespace=namespace, uid=uid)

    def publish(self, ref: JobRef) -> None:
        self.page = self.record.page if self.record else ""
        for key, value in zip(_XCOMS, (ref.name, ref.namespace, ref.uid), strict=True):
            self._ti.xcom_push(key=key, value=storable(value))
        self._push_url(ref)

    def note_page(self, ref: JobRef, page: str) -> None:
        """Remember the address that the job's status gives its page, if it is new and Airflow has no template."""
        if not page or page == self.page or job_url(ref):
            return
        self.page = page
        self.remember(page=page)
        self._push_url(ref)

    def _push_url(self, ref: JobRef) -> None:
        if url := job_url(ref) or self.page:
            self._ti.xcom_push(key=_URL_XCOM, value=storable(url))

    def _xcom(self, key: str) -> Any:
        index = -1 if self._ti.map_index is None else self._ti.map_index
        return self._ti.xcom_pull(task_ids=self._ti.task_id, key=key, map_indexes=index)


def load(stored: Any) -> Record | None:
    """Return the record that the store holds; None for none. Raises MXNetJobError for one that can't be read."""
    if stored is None:
        return None
    try:
        return msgspec.convert(stored, Record)
    except msgspec.ValidationError as e:
        raise MXNetJobError(
            f"Airflow's task state store holds something else than an MXJob's record under {STORE_KEY!r} ({e}). "
            "To start anew, delete that key in the task's page, after making sure that no job of it runs."
        ) from e
