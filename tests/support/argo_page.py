"""What the page about Argo shows: its blocks, and the objects of Argo's in them."""

import re
from pathlib import Path
from typing import Any

import yaml

_PAGE = Path(__file__).parents[2] / "docs" / "argo.md"
_FENCED = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks_of(*languages: str) -> list[str]:
    return [each["text"] for each in _FENCED.finditer(_PAGE.read_text()) if each["language"] in languages]


def blocks(words: str) -> list[str]:
    """The blocks of commands or YAML that have these words in them, as whoever copies one has it."""
    return [text for text in _blocks_of("shell", "yaml") if words in text]


def spans(begin: str) -> list[str]:
    """The commands within its sentences that begin like this."""
    return re.findall(rf"`({re.escape(begin)}[^`]*)`", _PAGE.read_text())


def programs() -> list[str]:
    """The programs in Python that print a workflow."""
    return [each for each in _blocks_of("python") if "to_yaml()" in each]


def sensor() -> dict[str, Any]:
    """The Sensor of Argo Events."""
    (block,) = blocks("kind: Sensor")
    made: dict[str, Any] = yaml.safe_load(block)
    return made


def trigger() -> dict[str, Any]:
    """What the Sensor does with an event: an object under `source`, and the parameters that are filled in."""
    (only,) = sensor()["spec"]["triggers"]
    found: dict[str, Any] = only["template"]["k8s"]
    return found
