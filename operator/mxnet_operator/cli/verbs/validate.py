"""`mxjob validate`: check manifests as the API server would, without a server."""

from typing import Annotated, Any

import typer

from mxnet_operator.api.job_formats import submission_errors, to_v1
from mxnet_operator.api.validation import decode, unknown_fields, without_nulls
from mxnet_operator.cli.errors import CommandError, Exit, leave, show_error
from mxnet_operator.cli.manifests import (
    Document,
    EmptyListError,
    FilesArgument,
    FilesOption,
    name_of,
    read_documents,
    sources_given,
)
from mxnet_operator.cli.output.terminal import say, write_line
from mxnet_operator.plan.notices import unused_gpus, workers_alone

EXAMPLES = """
[bold]Examples[/]

  mxjob validate -f job.yaml

  mxjob validate jobs/*.yaml

  helm template chart | mxjob validate -f -
"""


AllowUnknownOption = Annotated[
    bool,
    typer.Option(
        "--allow-unknown-fields",
        help="Accept unknown fields, such as those of a newer Kubernetes. The API server warns about them.",
    ),
]


def validate(
    files: FilesArgument = None, more_files: FilesOption = None, allow_unknown_fields: AllowUnknownOption = False
) -> None:
    """Check job manifests of any API version, without a server.

    Shows the line and field of each mistake and what is expected, in the API server's words. Exits with 2 if there is
    any. A warning, such as of a GPU that nothing uses, goes to stderr and doesn't change the exit code.
    """
    found_mistakes = False
    for source in sources_given(files, more_files, "mxjob validate -f job.yaml"):
        try:
            documents = read_documents(source)
        except EmptyListError:
            say(f"{name_of(source)}: nothing to check: empty list")
            continue
        except CommandError as error:
            show_error(error)
            found_mistakes = True
            continue
        for document in documents:
            found_mistakes |= _report(document, alone=len(documents) == 1, allow_unknown=allow_unknown_fields)
    if found_mistakes:
        leave(Exit.USAGE)


def mistakes(document: Document, *, allow_unknown: bool = False, named: bool = False) -> list[str]:
    """List every reason for which a document can't be run as it is: `job.yaml:7: spec.jobMode: Required value`.

    `named` adds the job's name after the line, since line numbers of piped input can't be looked up.
    """
    found = [(error.path, error.message) for error in submission_errors(document.content)]
    if isinstance(document.content, dict) and not allow_unknown:
        found += [(error.path, error.detail) for error in unknown_fields(document.content)]
    name = _name(document.content) if named else ""
    return [f"{document.source}:{document.line(path)}: {name}{text}" for path, text in found]


def _name(content: Any) -> str:
    metadata = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return ""
    namespace = f"{metadata['namespace']}/" if isinstance(metadata.get("namespace"), str) else ""
    return f"{content.get('kind') or 'job'} {namespace}{metadata['name']}: "


def _report(document: Document, *, alone: bool, allow_unknown: bool) -> bool:
    where = document.source if alone else f"{document.source} (document {document.position})"
    if not document.is_job:
        say(f"{where}: skipped: kind {document.content['kind']} is not checked")
        return False
    errors = mistakes(document, allow_unknown=allow_unknown, named=not alone)
    for error in errors:
        write_line(error)
    if not errors:
        metadata = document.content["metadata"]
        write_line(f"{where}: ok: {document.content['kind']} {metadata.get('name') or metadata['generateName'] + '*'}")
        job = decode(to_v1(without_nulls(document.content)))
        for warning in (*unused_gpus(job), *workers_alone(job)):
            say(f"{where}: warning: {warning.message}")
    return bool(errors)
