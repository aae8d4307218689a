"""Uncached reads of a job's children other than pods that exist without the label by which they are watched.

Operators before this one made some: training-operator 1.8.1 its pod groups, older ones their Services.
"""

from collections.abc import Sequence

import msgspec

from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.child_kinds import ChildKind
from mxnet_operator.kube.client import Client
from mxnet_operator.plan import ChildView
from mxnet_operator.readers.metadata import has_watched_label


async def unwatched_children(
    client: Client, job: MXJob, kinds: Sequence[ChildKind], children: tuple[ChildView, ...]
) -> tuple[ChildView, ...]:
    """Return children that a job with defaults wants, and controls, that exist though no watch can show them.

    `children` are the cached ones, which are not asked for.
    """
    known = {(type(child), child.name) for child in children}
    found: list[ChildView] = []
    for kind in kinds:
        if kind.rule is None:
            continue
        for creation in kind.rule.wanted(job):
            if (kind.rule.view, creation.name) in known:
                continue
            stored = await client.find(kind.resource.path(job.metadata.namespace, creation.name))
            child = None if stored is None else kind.project(msgspec.Raw(msgspec.json.encode(stored)))
            if stored is None or child is None or child.view.owner_uid != job.metadata.uid:
                continue
            if not has_watched_label(stored["metadata"].get("labels")):
                found.append(msgspec.structs.replace(child.view, is_watched=False))
    return tuple(found)
