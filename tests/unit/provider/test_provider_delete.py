"""Which jobs `MXNetJobDeleteOperator` may say are gone: those of a namespace that somebody stated."""

import json
from typing import Any

import pytest

from mxnet_provider.exceptions import MXNetJobDeletedError
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.operators.mxnet_job_delete import MXNetJobDeleteOperator


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The namespaces in which the job was to be deleted: the first deletion finds it, and later ones don't."""
    found: list[str] = []

    def delete_job(_hook: Any, ref: Any, **_options: Any) -> bool:
        found.append(ref.namespace)
        return len(found) == 1

    monkeypatch.setattr(MXNetJobHook, "delete_job", delete_job)
    monkeypatch.setattr(MXNetJobHook, "is_in_cluster", False)
    return found


def deletion(monkeypatch: pytest.MonkeyPatch, extra: dict[str, Any], **options: Any) -> Any:
    connection = json.dumps({"conn_type": "kubernetes", "extra": {"disable_tcp_keepalive": True, **extra}})
    monkeypatch.setenv("AIRFLOW_CONN_TRAINING", connection)
    operator = MXNetJobDeleteOperator(task_id="d", job_name="j", job_uid="u", kubernetes_conn_id="training", **options)
    return operator.execute.__wrapped__(operator, {})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("extra", "options"),
    [({"namespace": "team"}, {}), ({}, {"namespace": "team"}), ({"namespace": "other"}, {"namespace": "team"})],
    ids=["connection", "argument", "both"],
)
def test_a_retry_finds_the_job_gone_that_the_try_before_deleted(
    monkeypatch: pytest.MonkeyPatch, asked: list[str], extra: dict[str, Any], options: dict[str, Any]
) -> None:
    assert [deletion(monkeypatch, extra, **options) for _ in range(2)] == [True, False]
    assert asked == ["team", "team"]
    with pytest.raises(MXNetJobDeletedError, match="is gone"):
        deletion(monkeypatch, extra, missing_ok=False, **options)


def test_in_a_namespace_that_nobody_stated_it_may_run_elsewhere(
    monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    assert deletion(monkeypatch, {}) is True
    with pytest.raises(MXNetJobDeletedError, match="may run in another"):
        deletion(monkeypatch, {})
    assert asked == ["default", "default"]
