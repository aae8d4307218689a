"""Kind of child of a job: its resource, projection, and create, change and delete actions."""

from collections.abc import Callable
from typing import Any

import msgspec

from mxnet_operator.api.types import MXJob
from mxnet_operator.controller.projection import Child
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan import ChildRule


class Patch(msgspec.Struct, frozen=True):
    """Change of an object, as a JSON merge patch."""

    body: dict[str, Any]
    subresource: str = ""


class ChildKind(msgspec.Struct, frozen=True, kw_only=True):
    """Kind of child of a job.

    Kinds that `plan` treats alike have a `rule`, which names the action that deletes; pods have policies of their own.
    """

    resource: Resource
    project: Callable[[msgspec.Raw], Child[Any] | None]
    """Function that projects an object for the cache; None for one that no job controls."""
    create: type
    """Action that creates one."""
    build: Callable[[MXJob, Any, bool], dict[str, Any]]
    """Function that builds the manifest for such an action, given a job with defaults, and whether the fail-fast hook's
    ConfigMap exists.
    """
    end: tuple[type, ...]
    """Actions that stop, change or delete one."""
    patch: Callable[[MXJob, Any], Patch] | None = None
    """Patches of the actions that change one; the uid that they name is required besides."""
    rule: ChildRule | None = None
    needed: bool = False
    """Whether no job runs without it: the controller isn't ready before it is listed. Any other kind is watched, and
    its objects are created, only while the server serves it.
    """
    decorate: Callable[[MXJob, dict[str, Any]], dict[str, Any]] | None = None
    """Function that adds to a pod's manifest where such objects exist: the name of the pod's group."""
    dropped: Callable[[MXJob, dict[str, Any]], str] | None = None
    """Function that describes what the server dropped from an object as it was stored; empty where it is whole."""
    dropped_of_pod: Callable[[MXJob, dict[str, Any]], str] | None = None
    """Function that describes what the server dropped from a decorated pod; empty where it is whole."""
