"""Address of a job's page: a cluster administrator's template, and what may be linked to."""

from collections.abc import Mapping
from string import Formatter
from typing import Any, Final
from urllib.parse import urlsplit

FIELDS: Final = ("namespace", "name", "uid")
"""Placeholders of a template, in braces."""
LONGEST_TEMPLATE: Final = 1024
"""Maximum characters of a template: each job's status has a copy."""
_LONGEST_ADDRESS: Final = 2048


def template_mistake(template: str) -> str:
    """Return what is wrong with a template of job pages, as the end of a sentence about it; empty for nothing."""
    if len(template) > LONGEST_TEMPLATE:
        return f"is longer than {LONGEST_TEMPLATE} characters"
    try:
        parsed = [parts for parts in Formatter().parse(template) if parts[1] is not None]
    except ValueError as e:
        return f"has a brace too many or too few: {e}"
    for _, field, form, conversion in parsed:
        if field not in FIELDS or form or conversion:
            given = f"{field}{'!' + conversion if conversion else ''}{':' + form if form else ''}"
            return f"has the placeholder {{{given}}}, and may have {', '.join(f'{{{each}}}' for each in FIELDS)}"
    if not {"name", "uid"}.intersection(field for _, field, _, _ in parsed):
        return "has neither {name} nor {uid}: it would be the same address for every job"
    if not is_web_address(job_url(template, namespace="default", name="digits", uid="0")):
        return "is no http or https address that a browser opens, such as https://jobs.example.com/{namespace}/{name}"
    return ""


def job_url(template: str, *, namespace: str, name: str, uid: str) -> str:
    return template.format(namespace=namespace, name=name, uid=uid)


def job_page(job: Mapping[str, Any]) -> str:
    """Return the address of a job's page that its status has; empty where it has none, or nothing to link to."""
    given = (job.get("status") or {}).get("url")
    return given if isinstance(given, str) and is_web_address(given) else ""


def is_web_address(text: str) -> bool:
    """Return whether a text from outside may become a link: http or https, a host, no credentials, plain ASCII."""
    if len(text) > _LONGEST_ADDRESS or not all("!" <= character <= "~" for character in text):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
