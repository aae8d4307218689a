"""Kinds of children of a job, one row each: a new one is a file beside this one and its row here."""

from typing import Final

from mxnet_operator.controller.children.pods import PODS
from mxnet_operator.controller.children.services import SERVICES
from mxnet_operator.integrations.child_kinds import ChildKind, Patch

KINDS: Final[tuple[ChildKind, ...]] = (SERVICES, PODS)

__all__ = ["KINDS", "PODS", "SERVICES", "ChildKind", "Patch"]
