"""`mxjob validate`: what the API server would say to a manifest, without a server."""

from typing import Annotated, Any

import typer

from mxnet_operator.api.forms import errors as job_errors
from mxnet_operator.api.validation import unknown_fields
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
from mxnet_operator.cli.terminal import say, write_line

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
        help="Take fields that this release doesn't know, of a newer Kubernetes say. The API server warns of them.",
    ),
]


def validate(
    files: FilesArgument = None, more_files: FilesOption = None, allow_unknown_fields: AllowUnknownOption = False
) -> None:
    """Check manifests of jobs without a server, in whatever form they are written.

    Says of each mistake where it is, which field it is in and what is expected, in the words in which the API server
    would refuse it. Exits with 2 if there is any.
    """
    found_mistakes = False
    for source in sources_given(files, more_files, "mxjob validate -f job.yaml"):
        try:
            documents = read_documents(source)
        except EmptyListError:
            say(f"{name_of(source)}: nothing to check: an empty list")
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
    """Every reason for which the server would refuse a document: `job.yaml:7: spec.jobMode: Required value`.

    `named` puts the job's name behind the line: in a list that was piped in, nobody can look lines up.
    """
    found = [(error.path, error.message) for error in job_errors(document.content)]
    if isinstance(document.content, dict) and not allow_unknown:
        found += [(error.path, error.detail) for error in unknown_fields(document.content)]
    name = _name(document.content) if named else ""
    return [f"{document.source}:{document.line(path)}: {name}{text}" for path, text in found]


def _name(content: Any) -> str:
    """The job's kind, namespace and name, as far as it has them: `MXJob team-a/digits: `."""
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
    return bool(errors)
