"""What the controller has to know of a kind of child: where it lives, how it is read, created and ended."""

from collections.abc import Callable
from typing import Any

import msgspec

from mxnet_operator.api.types import MXJob
from mxnet_operator.controller.observe import Child
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan import ChildRule


class ChildKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of child.

    Kinds that `plan` treats alike have a `rule`, which names the action that deletes; pods have policies of their own.
    """

    resource: Resource
    project: Callable[[msgspec.Raw], Child[Any] | None]
    """What is cached of an object; None for one that no job controls."""
    create: type
    """The action that creates one."""
    build: Callable[[MXJob, Any, bool], dict[str, Any]]
    """The manifest for such an action, of a job with defaults; True where the fail-fast hook's ConfigMap is there."""
    end: tuple[type, ...]
    """The actions that stop, change or delete one."""
    rule: ChildRule | None = None
    needed: bool = True
    """Whether no job runs without it. Any other kind is watched and created only while the server serves it."""
