"""What pages, docstrings and comments name is in the repository: a reader who looks for it finds it."""

import ast
import io
import re
import subprocess
import tokenize
from functools import cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

ROOT = Path(__file__).parents[3]
TEXTS = {".md", ".py", ".yaml", ".yml", ".toml", ".in", ".sh", ".go"}
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
NAMED = re.compile(
    r"(?<![\w./<>$*{}:@~+=-])(?P<path>(?:\.{1,2}/)*[\w-]+(?:[./][\w-]+)*\.(?:md|py|ya?ml|toml|sh))(?![\w/*-])"
)
ELSEWHERE = {
    "common/fit.py",  # apache/mxnet's examples
    "fit.py",
    "train_mnist.py",
    "example/image-classification/common/fit.py",
    "example/image-classification/train_cifar10.py",
    "install.yaml",  # a release's, not in the repository
    "kvstore_server.py",  # MXNet's
    "mxnet/kvstore/kvstore_server.py",
    "scheduling.volcano.sh",  # Volcano's API group, no script
    "launch.py",  # MXNet's
    "start-job.py",  # kubeflow/mxnet-operator's
    "tools/launch.py",  # MXNet's
}
"""Files of other projects that are named."""
A_READERS = {
    "bad.yaml",
    "broken.yaml",
    "conf.yaml",
    "digits.py",
    "digits.yaml",
    "job.yaml",
    "kustomization.yaml",
    "old.yaml",
    "params.yaml",
    "setup.py",
    "train.py",
}
"""Names that stand for a file of the reader's own."""
QUOTING = "examples/seeds/*/README.md"
"""Pages that quote what other projects' documents say of their files; the links are checked there, too."""


@cache
def tracked():
    """The files of the repository, as paths from its root."""
    listed = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, capture_output=True, text=True, check=True)
    return [PurePosixPath(line) for line in done.stdout.splitlines() if (ROOT / line).is_file()]


@cache
def endings():
    """Every way to name a file of the repository by the end of its path."""
    found = set()
    for path in tracked():
        parts = path.parts
        found |= {"/".join(parts[start:]) for start in range(len(parts))}
    return found


def texts():
    return [path for path in tracked() if path.suffix in TEXTS or path.name.startswith(("Makefile", "Dockerfile"))]


@cache
def prose(path):
    """The comments and docstrings of a file, and the whole of a page, each with its line."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.suffix == ".md":
        return [(1, text)]
    if path.suffix != ".py":
        return [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith(("#", "//"))]
    if NAMED.search(text) is None:
        return []
    comments = [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    return comments + [
        (node.lineno, node.value.value)
        for node in statements
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


def is_there(name, path):
    beside = (ROOT / path).parent / name
    return beside.exists() or (ROOT / name).exists() or name in endings() or name.removeprefix("./") in endings()


def missing_names(path, text):
    """The files that a text names, but for those of others, which the repository lacks."""
    without_urls = re.sub(r"\w+://\S+", "", text)
    return sorted(
        name
        for found in NAMED.finditer(without_urls)
        if (name := found["path"]) not in ELSEWHERE and name not in A_READERS and not is_there(name, path)
    )


def slug(heading):
    """The anchor that GitHub makes of a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


@cache
def anchors(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {slug(line.lstrip("#")) for line in text.splitlines() if re.match(r"#{1,6} ", line)}


def broken_links(path):
    """The links of a page that lead nowhere: to no file, or to no heading of a page."""
    page = ROOT / path
    found = []
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        target, _, anchor = link["target"].partition("#")
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        goal = (page.parent / unquote(target)).resolve() if target else page
        if not goal.exists() or (anchor and goal.suffix == ".md" and anchor not in anchors(goal)):
            found.append(link["target"])
    return found


def test_every_relative_link_of_a_page_leads_to_a_file_and_a_heading():
    pages = [path for path in tracked() if path.suffix == ".md"]
    assert len(pages) > 50
    assert [f"{page}: {target}" for page in pages for target in broken_links(page)] == []


def test_every_file_that_a_text_names_is_there():
    paths = [path for path in texts() if not path.match(QUOTING)]
    assert len(paths) > 500
    assert [
        f"{path}:{line}: {name}" for path in paths for line, text in prose(path) for name in missing_names(path, text)
    ] == []
