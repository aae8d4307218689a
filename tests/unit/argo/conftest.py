"""Argo's own evaluation of expressions, for the tests of what the templates write."""

from collections.abc import Iterator

import pytest
from argo_expressions import Expressions, argo_expressions


@pytest.fixture(scope="module")
def argo() -> Iterator[Expressions]:
    """The program that evaluates expressions as Argo's controller does."""
    with argo_expressions() as found:
        yield found
