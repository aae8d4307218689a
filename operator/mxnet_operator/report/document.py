"""HTML document of a page: head, style and main part; it refers to nothing that isn't given."""

from collections.abc import Iterable
from html import escape
from importlib import resources


def section(name: str, title: str, content: str) -> str:
    """Build a section of a page; `name` is its id."""
    return f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>{content}</section>'


def scrolled(label: str, content: str, kind: str = "") -> str:
    """Build an area that scrolls where its content has no room, with the keyboard too.

    On a narrow screen, a table of the kind `words` has its long cells below the others.
    """
    return f'<div class="scroll {kind}" tabindex="0" role="group" aria-label="{label}">{content}</div>'


def table(heading: Iterable[str], rows: Iterable[str]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in heading)
    lines = "\n".join(rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{lines}</tbody></table>"


def message(text: str, *, is_failure: bool = False) -> str:
    """Build a message: its first line as text, the others, such as a traceback, in monospace.

    The last line of a failure says most: it comes first.
    """
    first, _, more = text.strip("\n").partition("\n")
    cause, lines = last_line(more) if is_failure else "", ""
    if more.strip() != cause:
        lines = f'<pre tabindex="0" role="group" aria-label="More of the message">{escape(more)}</pre>'
    cause = f'<p class="cause"><code>{escape(cause)}</code></p>' if cause else ""
    return f"{cause}<p>{escape(first)}</p>{lines}" if first else ""


def last_line(text: str) -> str:
    """Return the last line that isn't blank; empty where there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def document(title: str, sections: Iterable[str], *, head: str = "") -> str:
    """Build the document.

    Args:
        title: Title of the page, as text.
        sections: HTML of the main part.
        head: HTML that ends the head, such as scripts.
    """
    style = resources.files("mxnet_operator.report").joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style>{head}\n</head>\n<body>\n<main>",
            *sections,
            "</main>\n</body>\n</html>\n",
        )
    )
