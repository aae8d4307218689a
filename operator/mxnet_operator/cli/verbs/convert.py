"""`mxjob convert`: manifests of older API versions to kubeflow.org/v1, with comments on what changed."""

import re
from collections.abc import Iterator
from dataclasses import replace

from mxnet_operator.api.conversion import convert as to_v1
from mxnet_operator.api.manifest_text import comments
from mxnet_operator.cli.errors import Exit, UsageError, leave
from mxnet_operator.cli.manifests import (
    Document,
    FilesArgument,
    FilesOption,
    documents_in,
    name_of,
    read_text,
    sources_given,
)
from mxnet_operator.cli.output.commented_yaml import commented_yaml, last_line
from mxnet_operator.cli.output.terminal import say, write_line
from mxnet_operator.cli.verbs.validate import mistakes

EXAMPLES = """
[bold]Examples[/]

  mxjob convert -f old.yaml >job.yaml

  kubectl get mxjobs.fioravanzo.org my-job -o yaml | mxjob convert -f -
"""
_SEPARATOR = re.compile(r"^---(?=\s|$)[^\S\n]*\n?", re.MULTILINE)

_DIRECTIVE = re.compile(r"^%(YAML|TAG)\b[^\n]*$", re.MULTILINE)


def convert(files: FilesArgument = None, more_files: FilesOption = None) -> None:
    """Convert job manifests of any older API version to kubeflow.org/v1, on standard output.

    A comment above each changed field says what it was, and the comments of the manifest stay. Documents that are v1
    already, or that are not jobs, are printed unchanged: converting twice changes nothing. If any manifest has a
    mistake, prints none and exits with 2.
    """
    printed: list[str] = []
    empty = True
    found: list[str] = []
    sources = sources_given(files, more_files, "mxjob convert -f old.yaml")
    for source in sources:
        for part in _parts(read_text(source)):
            documents = documents_in(part, name_of(source))
            empty = empty and not documents
            for document in (each for each in documents if each.is_job):
                content = document.content
                if isinstance(content, dict):  # a status isn't converted
                    content = {name: value for name, value in content.items() if name != "status"}
                found += mistakes(replace(document, content=content))
            if not found:
                printed += _converted(part, documents)
    if found:
        for mistake in found:
            say(mistake)
        leave(Exit.USAGE)
    if empty:
        names = ", ".join(map(name_of, sources))
        raise UsageError(f"{names}: empty; expected an MXJob manifest")
    write_line("\n---\n".join(printed))


def _parts(text: str) -> Iterator[str]:
    """Yield the documents of a text with the comments around them, each padded to its line numbers in the text."""
    text = _DIRECTIVE.sub("", text)
    start = 0
    for separator in (*_SEPARATOR.finditer(text), None):
        end = separator.start() if separator else len(text)
        if text[start:end].strip():
            yield "\n" * text.count("\n", 0, start) + text[start:end]
        start = separator.end() if separator else end


def _converted(part: str, documents: list[Document]) -> Iterator[str]:
    conversions = [to_v1(document.content) if document.is_job else None for document in documents]
    if not any(conversions):
        yield part.strip("\n")
        return
    left = comments(part)
    for document, conversion in zip(documents, conversions, strict=True):
        end = None if document is documents[-1] else last_line(document)
        own = [each for each in left if end is None or each.line <= end]
        left = left[len(own) :]
        yield commented_yaml(document, conversion, own)
