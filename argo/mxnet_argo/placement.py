"""Check of placement: Hera's fields of a template hold for the pod that waits, the job says where its own pods run."""

from typing import Any, Final

_FIELDS: Final = {
    "affinity": "affinity",
    "node_selector": "node_selector",
    "priority_class_name": "pod_priority_class_name",
    "scheduler_name": "scheduler_name",
    "tolerations": "tolerations",
}
"""Each field of a template and of an MXJobSpec, and what a Workflow calls it."""


def refuse_placement(template: Any) -> None:
    """Reject nodes for a step's own pod: who writes them there means the training's.

    Raises:
        ValueError: with where the job takes them, and where Argo's pods do.
    """
    for field, of_workflow in _FIELDS.items():
        if getattr(template, field, None):
            raise ValueError(
                f"{template.name}: {field} would place the pod that waits, not the job's: give it as"
                f" MXJobSpec({field}=...), beside a manifest, too; or, for all pods of Argo's, as"
                f" Workflow({of_workflow}=...)"
            )


__all__ = ["refuse_placement"]
