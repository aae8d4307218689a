"""Hook of mkdocs: adds the pages of the repository's root and Mermaid to the site, and mends links that leave docs/.

Material for MkDocs loads Mermaid from the network unless the page has loaded it already. Pages with a diagram load the
site's own copy, which `make docs` installs from npm.

Pages link by paths of the repository, which work where the repository is read. In the site such a link leads to the
repository's host (`repo_url`), and is its text alone where none is set.
"""

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parent.parent
ROOT_PAGES: Final = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "policy.md"}
"""Pages beside docs/, and where they are in the site."""
_PATHS: Final = {site: source for source, site in ROOT_PAGES.items()}
_CELL: Final = re.compile(r"<td.*?</td>", re.DOTALL)
_FENCED: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
MERMAID: Final = ROOT / ".venv" / "docs" / "node_modules" / "@mermaid-js" / "tiny" / "dist" / "mermaid.tiny.js"
_MERMAID_PATH: Final = "assets/javascripts/mermaid.tiny.js"
_LINK: Final = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, and Mermaid."""
    for source, site in ROOT_PAGES.items():
        files.append(File.generated(config, site, content=(ROOT / source).read_text(encoding="utf-8")))
    files.append(File.generated(config, _MERMAID_PATH, abs_src_path=str(MERMAID)))
    return files


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Load the site's Mermaid on a page with a diagram, and show a pipe in a cell's code without its backslash."""
    html = _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)
    if 'class="mermaid"' not in html:
        return html
    path = posixpath.relpath(_MERMAID_PATH, page.url or ".")
    return f'{html}<script src="{path}"></script>'


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Mend the links of a page, but for those in its code."""
    here = page.file.src_uri
    folder = posixpath.dirname(_PATHS.get(here, f"docs/{here}"))

    def mended(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["path"]))
        anchor = link["anchor"] or ""
        inside = ROOT_PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if inside is not None:
            return f"[{link['text']}]({posixpath.relpath(inside, posixpath.dirname(here) or '.')}{anchor})"
        if not config.repo_url:
            return link["text"]
        return f"[{link['text']}]({config.repo_url.rstrip('/')}/blob/main/{path})"

    parts = []
    end = 0
    for fenced in _FENCED.finditer(markdown):
        parts += [_LINK.sub(mended, markdown[end : fenced.start()]), fenced[0]]
        end = fenced.end()
    return "".join([*parts, _LINK.sub(mended, markdown[end:])])
