"""HTML document about one job, for the report and the live page: head, style and header; it refers to no other file."""

from collections.abc import Iterable
from html import escape
from importlib import resources


def document(
    name: str,
    namespace: str,
    state: str,
    message: str,
    sections: Iterable[str],
    *,
    meta: str = "",
    style: str = "",
) -> str:
    """Build the document.

    Args:
        name: The job's name.
        namespace: The job's namespace.
        state: The job's state, in one word.
        message: What there is to say about that; may be empty.
        sections: HTML of what follows the header.
        meta: HTML for the head, such as a refresh.
        style: CSS after the common one.
    """
    title, word = escape(name), escape(state)
    said = f"<p>{escape(message)}</p>" if message else ""
    css = resources.files("mxnet_operator.report").joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta name="viewport" content="width=device-width, initial-scale=1">{meta}',
            f"<title>{title}: {word}</title>",
            f"<style>{css}{style}</style>\n</head>\n<body>\n<main>",
            f'<header>\n<p class="kind">MXJob in namespace {escape(namespace)}</p>\n'
            f'<h1>{title} <span class="state {word.lower()}">{word}</span></h1>\n{said}\n</header>',
            *sections,
            "</main>\n</body>\n</html>\n",
        )
    )
