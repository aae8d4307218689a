"""Resource quantities, however odd: each is a number to reckon with, or none."""

import math
from decimal import Decimal
from typing import Any

import pytest
from builders import NOW, make_mxjob, make_pod, observe
from hypothesis import example, given
from hypothesis import strategies as st

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.quantities import add, amount_text, pod_requests, quantity, written
from mxnet_operator.integrations.gangs.gang import gang_of
from mxnet_operator.integrations.gangs.policy import GangPolicy
from mxnet_operator.plan import plan

_DIGITS = st.integers(0, 10**40).map(str) | st.sampled_from(["0", "", "0" * 50, "9" * 500])
_EXPONENTS = st.integers(-30, 30) | st.sampled_from([s * e for s in (1, -1) for e in (400, 999999, 1000000, 10**20)])
QUANTITIES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "+", "-"]),
    _DIGITS,
    st.just("") | _DIGITS.map(".{}".format),
    st.sampled_from(["", "m", "n", "k", "Gi", "Ei", "E"]) | _EXPONENTS.map("e{}".format) | _EXPONENTS.map("E{}".format),
)


def _or_none(text: object) -> Decimal | None:
    try:
        return quantity(text)
    except ValueError:
        return None


@given(QUANTITIES | st.text("0123456789.eEmkKi+-", max_size=12) | st.integers() | st.floats())
@example("1e1000000")
@example("1e-1000000")
@example("0e99999999999999999999")
@example("1E99999999999999999999")
@example(10**5000)
def test_a_quantity_is_a_number_to_reckon_with_or_none(text: object) -> None:
    amount = _or_none(text)
    if amount is not None:
        assert amount.is_finite()
        assert len(written(amount)) < 100
        assert math.isfinite(float(amount))
        assert amount % 1 >= -1
        assert math.ceil(amount / Decimal("1e-9")) <= max(amount, 0) * 10**9 + 1
        assert amount_text("memory", amount)
        assert add([{"cpu": amount}, {"cpu": amount}])["cpu"] == amount * 2


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("500m", "0.5"),
        ("1Gi", str(2**30)),
        ("9223372036854775807", "9223372036854775807"),
        ("8Ei", str(2**63)),
        ("1e3", "1000"),
        ("1E", "1e18"),
        ("1n", "1e-9"),
        ("-0", "0"),
        (0.25, "0.25"),
    ],
)
def test_what_kubernetes_reckons_with_is_read(text: object, amount: str) -> None:
    assert quantity(text) == Decimal(amount)


def digits(text: str) -> str:
    return "".join(filter(str.isdigit, text.partition("e")[0])) or "0"


def exponent(text: str) -> str:
    return text.lower().partition("e")[2] or "0"


@given(QUANTITIES)
@example("1e1000000")
def test_whatever_a_job_asks_for_it_is_decided_what_it_needs(text: str) -> None:
    resources: dict[str, Any] = {"limits": {"cpu": 1, "memory": text}}
    builder = make_mxjob().scheduler().worker(2, resources=resources).condition("Created")
    asked = builder.run_policy(schedulingPolicy={"minResources": {"memory": text}}).obj()
    waits = make_pod(asked, "Worker").unscheduled().set(unschedulable="0/1 nodes are available: 1 Insufficient memory.")
    odd = f"missing: map[memory:{{{{{digits(text)} {exponent(text)}}} {{<nil>}}  DecimalSI}}]"
    lacks = make_pod(asked, "Worker", 1).unscheduled().set(unschedulable=odd)
    for job in (asked, make_mxjob().scheduler().worker(2, resources=resources).condition("Created").obj()):
        plan(job, observe(job, waits), NOW, integrations=(GangPolicy(is_local=True),))
        plan(job, observe(job, lacks), NOW, integrations=(GangPolicy(is_local=True),))
        gang = gang_of(with_defaults(job))
        assert gang is not None
        assert all(len(amount) < 1100 for amount in gang.resources.values())
    if _or_none(text) is None:
        with pytest.raises(ValueError, match="quantity"):
            pod_requests({"containers": [{"resources": resources}]})
