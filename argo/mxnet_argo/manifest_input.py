"""A job whose whole manifest is an input of its template: JSON, of which Argo takes what is the author's to say.

What `CheckedJob` rejects when a workflow is built is known only once it runs: so it becomes the job's name, which the
API server rejects in a message that has it. `sprig.fail` would do for Argo, which then tries ten times.
"""

from collections.abc import Iterable
from typing import Final

from mxnet_argo.job import OWNER, PREFIX, WORKFLOW_UID_LABEL, hashed
from mxnet_argo.rendering import render
from mxnet_argo.values import Kind, Value, as_json, word
from mxnet_operator.api import names
from mxnet_operator.api.builtin_types import types
from mxnet_operator.api.formats.older_types import FLAT_FIELDS
from mxnet_operator.readers.argo_workflow import WORKFLOW_LABEL

AS_JSON: Final = "kubectl create -n NAMESPACE --dry-run=client -o json -f FILE"
"""What makes JSON of a manifest that is written as YAML; kubectl writes the namespace into it."""
NEEDS_V1: Final = f"an input takes a manifest of {names.API_VERSION}: convert it first: mxjob convert -f FILE"
PARTS: Final = ("apiVersion", "kind", "metadata", "spec", "status")
"""Fields of a manifest; a step takes no others, and writes no status."""


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


_OLDER_FIELDS: Final = _quoted((*FLAT_FIELDS, "replicaSpecs"))
"""Fields of spec that make a manifest one of an older format, whatever version is written."""


_METADATA_FIELDS: Final = _quoted((*types()["ObjectMeta"], "clusterName"))
"""Fields of metadata; servers before 1.25 wrote the last one."""


def whole_job(manifest: Value, *, prefix: str, deadline: int | Value, asked: Value) -> str:
    """Return the manifest as YAML with Argo's tags in it.

    `prefix` and `deadline` (seconds) are for a manifest without a name or an activeDeadlineSeconds. `asked` is "true"
    where the controller deletes the job with its workflow, else "false".
    """
    text = manifest.expression
    seconds = f"{deadline}"
    if isinstance(deadline, Value):
        as_it_is = deadline.expression
        seconds = f"({as_it_is} matches '^[0-9]{{1,18}}$' ? asInt({as_it_is}) : {as_it_is})"
    given = (
        f"let given = sprig.fromJson({text}); let job = type(given) == 'map' ? given : sprig.dict();"
        " let meta = type(job.metadata) == 'map' ? job.metadata : sprig.dict();"
    )
    judged = " ".join(
        (
            given,
            "let spec = type(job.spec) == 'map' ? job.spec : sprig.dict();",
            "let policy = type(spec.runPolicy) == 'map' ? spec.runPolicy : sprig.dict();",
            f"let unknown = concat(filter(keys(job), not (# in [{_quoted(PARTS)}])),"
            f" map(filter(keys(meta), not (# in [{_METADATA_FIELDS}])), 'metadata.' + #));",
            "let wrong = type(job.spec) != 'map'",
            f"? 'the manifest is no MXJob as JSON, which {AS_JSON} makes'",
            ": any([job.metadata, meta.labels, meta.annotations, spec.runPolicy], type(#) not in ['map', 'nil'])",
            "|| type(meta.name ?? '') != 'string'",
            "? 'metadata, labels, annotations and runPolicy of the manifest are mappings, and its name is text'",
            ": len(unknown) > 0 ? 'the manifest has no field ' + join(unknown, ', ')",
            f": (meta.name ?? '') != '' && not (meta.name matches '^{PREFIX}$')",
            "? 'the name of the manifest has small letters, digits and -, begins with a letter and ends with no -'",
            f": (job.apiVersion ?? '{names.API_VERSION}') != '{names.API_VERSION}'",
            f"|| (not ('runPolicy' in spec) && any(keys(spec), # in [{_OLDER_FIELDS}])) ? '{NEEDS_V1}'",
            f": (job.kind ?? '{names.KIND}') != '{names.KIND}' ? 'the manifest is of another kind than {names.KIND}'",
            ": not ((meta.namespace ?? '') in ['', workflow.namespace])",
            f"? 'the namespace is that of the workflow: leave it out of the manifest, or name it: {AS_JSON}'",
            ": policy.suspend != nil ? 'leave runPolicy.suspend out of the manifest, a new poller would set it again'",
            f": not ({asked.expression} in ['true', 'false']) ? '{', '.join(sorted(asked.parameters))}",
            f"is neither true nor false: ' + {asked.expression} : '';",
        )
    )

    def value(lets: str, expression: str) -> Value:
        return Value(expression, Kind("JSON", lambda each: f"{lets} {as_json(each)}", str, "x"))

    def merged(own: str, of_meta: str) -> Value:
        return value(given, f"sprig.merge(sprig.dict({own}), type({of_meta}) == 'map' ? {of_meta} : sprig.dict())")

    begins = f"(type(meta.name) == 'string' && meta.name != '' ? meta.name : '{prefix}')"
    # sprig.merge() takes a 0 for absent.
    limited = (
        "sprig.dict('runPolicy', policy.activeDeadlineSeconds == nil"
        f" ? sprig.merge(policy, sprig.dict('activeDeadlineSeconds', {seconds})) : policy)"
    )
    return render(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {
                "name": value(judged, f"wrong == '' ? {begins} + '-' + {hashed().expression} : wrong"),
                "namespace": word("workflow.namespace"),
                "labels": merged(
                    f"'{WORKFLOW_LABEL}', workflow.name, '{WORKFLOW_UID_LABEL}', workflow.uid", "meta.labels"
                ),
                "annotations": merged(
                    f"'{names.DELETE_WITH_WORKFLOW_ANNOTATION}', {asked.expression}", "meta.annotations"
                ),
                "ownerReferences": [OWNER],
            },
            "spec": value(judged, f"wrong == '' ? sprig.merge({limited}, spec) : sprig.dict()"),
        }
    )
