"""What Airflow keeps of a task's MXJob: a record for later processes and tries, and XComs for tasks downstream."""

from typing import Any, Final

import msgspec

from mxnet_operator.api.storable import storable
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.job import reattach
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.reattach import Record
from mxnet_provider.links.mxnet_job import job_url

_XCOMS: Final = ("job_name", "job_namespace", "job_uid")
_URL_XCOM: Final = "job_url"


class TaskMemory:
    """Record and XComs of the job of one try.

    Args:
        ti: The task instance.
        store: Airflow's task state store (3.3). None for an XCom in its place, which outlives a deferral, and not the
            try.
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
        """The record of a job that was begun."""
        if self.record is None:
            raise RuntimeError("there is no record yet")
        return self.record

    def stored(self) -> Record | None:
        """Return the record that an earlier process has left."""
        key = reattach.STORE_KEY
        return reattach.load(self._xcom(key) if self._store is None else self._store.get(key))

    def remember(self, **changes: Any) -> None:
        """Store the record with these fields changed; nothing where there is none."""
        if self.record is None:
            return
        self.record = msgspec.structs.replace(self.record, **changes)
        value = storable(msgspec.to_builtins(self.record))
        if self._store is None:
            self._ti.xcom_push(key=reattach.STORE_KEY, value=value)
        else:
            self._store.set(reattach.STORE_KEY, value)

    def recall(self, generation: int, plural: str) -> JobRef:
        """Return the job that the try has deferred, by the record, or else by the XComs.

        Raises:
            MXNetJobError: neither names one.
        """
        record = self.stored()
        if record is not None and record.generation == generation:
            self.record, self.page = record, record.page
            self.remember(waits_in="worker")
            return record.ref
        name, namespace, uid = map(self._xcom, _XCOMS)
        if not (name and namespace and uid):
            raise MXNetJobError("Neither Airflow's task state store nor the task's XComs say which job this is.")
        self.page = self._xcom(_URL_XCOM) or ""
        return JobRef(name=name, namespace=namespace, uid=uid, plural=plural)

    def publish(self, ref: JobRef) -> None:
        """Push the XComs that name the job."""
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
