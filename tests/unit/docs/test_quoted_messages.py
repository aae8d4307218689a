"""The messages in the first cells of the tables of docs/troubleshooting.md are ones that the product writes."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "troubleshooting.md"
PRODUCT = ("operator/mxnet_operator", "mxnet_provider", "argo/mxnet_argo")
OF_OTHERS = {
    'persistentvolumeclaim "images" not found',  # kube-scheduler's
    "ReplicaFailure: exceeded quota",  # the API server's
    "No such file or directory: '.env'",  # Python's
    'CreateContainerConfigError: configmap "rates" not found',  # the kubelet's
    "container mxnet: ErrImagePull",  # the kubelet's
}


@cache
def texts() -> str:
    """The product's code, with texts of several lines joined."""
    files = (path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))
    return "\n".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8")) for path in files)


def unwritten(message: str) -> list[str]:
    """The words of a message, without names and numbers, that stand beside no neighbour of theirs in any text."""
    words = message.split()
    known: set[int] = set()
    for at in range(len(words) - 1):
        if f"{words[at]} {words[at + 1]}" in texts():
            known |= {at, at + 1}
    plain = [at for at, word in enumerate(words) if re.fullmatch(r"[A-Za-z']{2,}[,:.?;]?", word)]
    return [words[at] for at in plain if at not in known]


def test_each_message_in_a_first_cell_is_in_the_code() -> None:
    cells = re.findall(r"^\| (.+?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    quoted = [each for cell in cells for each in re.findall(r"`([^`]+)`", cell)]
    messages = [each for each in quoted if len(each.split()) > 2 and each not in OF_OTHERS]
    assert len(messages) > 20
    few = {each: words for each in messages if len(words := unwritten(each)) > len(each.split()) // 4}
    assert few == {}
