"""Docstrings, messages and pages use the terms of Kubernetes, Airflow and Argo, and no idiom of this project's own.

The help of both commands is in docs/cli-reference.md, which is generated, and so is read here as a page.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ["operator/mxnet_operator", "mxnet_provider", "argo/mxnet_argo"]
IDIOMS = {
    r"\bwhat (?:becomes|became|has become|will become) of\b": "say what happens: the state, or the action taken",
    r"\b(?:whoever|whomever|whosever)\b": "name the role: user, administrator, holder, client",
    r"\bthose (?:that|who)\b": "repeat the noun",
    r"\b(?:comes?|came|coming) to be\b": "is created",
    r"\btold\b": "notified, reported, passed",
    r"\b(?:hears?|heard)\b": "is notified, is called back, receives",
    r"\blooked at\b": "reconciled, read, checked",
    r"\blook(?:s|ing)? at (?:a |the |every |each |all )?(?:jobs?|MXJobs?)\b": "reconcile",
    r"\b(?:one|each|every|the next|a later) look\b": "reconciliation",
    r"\b(?:pods?|it|they) (?:is|are|that is|that are) going\b": "terminating",
    r"\b(?:pods?|it|they|that|which) (?:won't|don't|doesn't) go\b": "terminating",
    r"\bpatience\b": "retry budget",
    r"\brefus(?:e|es|ed|ing|al|als)\b": "reject, rejection",
    r"\b(?:older|list|flat|v1|own|other|another|each|every|this|of one) forms?\b": "API version, format",
    r"\bthe same of\b": "say what, without the line above",
    r"(?:\A|\n\n *)(?:As for|The same)\b": "say what, without the line above",
}
"""Idioms as regular expressions, each with what to write instead."""
ALLOWED: dict[tuple[str, str], str] = {
    (f"operator/mxnet_operator/{file}", "patience"): "a parameter of the public client, and of what calls it"
    for file in ("cli/running/run_job.py", "client/async_client.py", "client/sync_client.py")
} | {("argo/mxnet_argo/pipelines.py", "told"): "a variable of Argo's expressions"}
"""Findings that are right where they are, by file and phrase, each with the reason."""
NO_NOUN = re.compile(r"\s*(?:How|What|Why|Which|When|Where|Who|Whose|Those|There|As|Of)\b")
"""First words of a docstring that is neither a noun phrase nor an imperative, and so no tooltip by itself."""
HOOK = "operator/mxnet_operator/builders/fail_fast/hook/sitecustomize.py"
"""The bytes of the hook name its ConfigMap in every namespace: it is not changed for a word."""


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def docstrings(path):
    """The docstrings of a module, of its attributes too, each with its line."""
    return [(node.lineno, node.value.value) for node in ast.walk(ast.parse(path.read_text())) if is_docstring(node)]


def messages(path):
    """The string literals of a module that have a blank, and so are words for somebody, each with its line."""
    tree = ast.parse(path.read_text())
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    no_message = {id(node.value) for node in ast.walk(tree) if is_docstring(node)}
    no_message |= {id(part) for node in formatted for part in node.values}
    literals = [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in no_message
    ]
    joined = [
        (node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values))
        for node in formatted
    ]
    return [(line, text) for line, text in literals + joined if re.search(r"\S\s+\S", text)]


def without_quotations(text):
    """A page or docstring without code, names, output, and the targets of its links; lines stay where they are."""
    for quotation in (r"^ *```.*?^ *```", r"`[^`\n]*`", r"\]\([^)\n]*\)", r'"[^"\n]*"'):
        text = re.sub(quotation, lambda found: "\n" * found[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    return text


def idioms_of(text):
    """The idioms in a text, each with its line and what to write instead."""
    prose = without_quotations(text)
    return sorted(
        (prose.count("\n", 0, found.end()), found[0].strip().lower(), instead)
        for idiom, instead in IDIOMS.items()
        for found in re.finditer(idiom, prose, flags=re.IGNORECASE | re.MULTILINE)
    )


def texts(path):
    return docstrings(path) + messages(path) if path.suffix == ".py" else [(1, path.read_text(encoding="utf-8"))]


def reviewed():
    """Modules of the product, and pages for users; decisions and facts are for developers and keep their words."""
    modules = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return modules + sorted((ROOT / "docs").glob("*.md")) + [ROOT / "README.md", ROOT / "SECURITY.md"]


def idioms_left():
    """Every idiom that no file is allowed, with its place and what to say instead."""
    for path in reviewed():
        name = path.relative_to(ROOT).as_posix()
        for start, text in texts(path):
            for line, phrase, instead in idioms_of(text):
                if (name, phrase) not in ALLOWED:
                    yield f"{name}:{start + line}: {phrase!r}: {instead}"


def test_docstrings_and_pages_use_the_terms_of_the_field():
    assert len(reviewed()) > 300
    assert list(idioms_left()) == []


def test_an_allowed_phrase_is_still_there():
    there = {
        (name, phrase)
        for name in {name for name, _ in ALLOWED}
        for _, text in texts(ROOT / name)
        for _, phrase, _ in idioms_of(text)
    }
    assert set(ALLOWED) - there == set()


def test_a_docstring_begins_with_a_noun_or_an_imperative():
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    described = [
        (path.relative_to(ROOT).as_posix(), ast.get_docstring(node) or "")
        for path in reviewed()
        if path.suffix == ".py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, kinds)
    ]
    assert len(described) > 2000
    assert [f"{name}: {text}" for name, text in described if NO_NOUN.match(text) and name != HOOK] == []


def test_a_message_is_read_as_a_docstring_is(tmp_path):
    module = tmp_path / "module.py"
    module.write_text('"""Docstring that is refused."""\nraise Error(f"{server} refused {this}")\nstate = "refused"\n')
    assert [(line, phrase) for line, text in messages(module) for _, phrase, _ in idioms_of(text)] == [(2, "refused")]


def test_functions_are_described_in_the_imperative():
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "D401" in ruff["select"]


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("What became of the job.", ["what became of"]),
        ("Whoever waits for those that run is told.", ["those that", "told", "whoever"]),
        ("Run on.\n\nThe same of a text.", ["the same", "the same of"]),
        ("A job that is looked at again", ["looked at"]),
        ("pods that are going", ["pods that are going"]),
        ("Reconcile the job; `--retry-timeout` is an option, [refused](what-is-refused.md) a link.", ["refused"]),
        ('kubectl says "refused".', []),
        ("```\nError: refused\n```\nThe API server rejects it.", []),
    ],
)
def test_an_idiom_is_recognized(text, phrases):
    assert sorted(phrase for _, phrase, _ in idioms_of(text)) == phrases


def test_an_idiom_is_reported_with_its_line():
    assert [line for line, _, _ in idioms_of("```\nrefuse\n```\n\nIt refuses.")] == [4]
