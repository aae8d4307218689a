"""The table of docs/airflow-coming-from.md names all that KubernetesPodOperator and SparkKubernetesOperator have."""

import inspect
import re
from pathlib import Path

import pytest
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "airflow-coming-from.md"
SECTION = "## Parameters side by side"
NO_PARAMETERS = {"task.kubernetes"}


def columns():
    """What stands in backticks in each column of the table, without values."""
    rows = [line for line in PAGE.read_text().partition(SECTION)[2].splitlines() if line.startswith("| ")]
    cells = [row.split("|")[1:4] for row in rows[1:]]
    return [{name for row in cells for name in re.findall(r"`@?([\w.]+)", row[index])} for index in range(3)]


def parameters(*classes):
    return {
        name
        for cls in classes
        for name, each in inspect.signature(cls.__init__).parameters.items()
        if name != "self" and each.kind is not each.VAR_KEYWORD
    }


@pytest.mark.parametrize(("column", "operator"), [(0, KubernetesPodOperator), (1, SparkKubernetesOperator)])
def test_every_parameter_of_the_other_operator_is_in_its_column_and_no_other(column, operator):
    named = columns()[column] - NO_PARAMETERS
    assert sorted(parameters(operator) - named) == []
    assert sorted(named - parameters(operator)) == []


def test_what_the_last_row_lists_are_ours_alone():
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith("| | | "))
    ours = parameters(*(cls for cls in MXNetJobOperator.__mro__ if cls.__module__.startswith("mxnet_provider")))
    named = set(re.findall(r"`(\w+)`", row))
    assert named <= ours - parameters(KubernetesPodOperator, SparkKubernetesOperator)
