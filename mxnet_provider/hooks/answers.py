"""Checks of an API server's answers, before a hook believes them; the same for both hooks.

Proxies, gateways and login pages answer for a server, with 200 and HTML, `null` or `{}`. Such an answer is an outage to
the caller: it is waited out, and a write may have been carried out.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

_SHOWN: Final = 120
"""Characters of an odd answer that its error quotes."""


class InvalidAnswerError(ConnectionError):
    """The answer isn't one of a Kubernetes API server to what was asked."""


def decoded(body: bytes) -> Any:
    """Return the JSON value of a body.

    Raises:
        InvalidAnswerError: it is none.
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidAnswerError(f"the answer is no JSON: {_quoted(body.decode('utf-8', 'replace'))}") from error


def object_of(answer: Any) -> dict[str, Any]:
    """Return an object as the API server stores it: with a name and a uid.

    Raises:
        InvalidAnswerError: it is something else.
    """
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    if not isinstance(metadata, Mapping) or not all(isinstance(metadata.get(key), str) for key in ("name", "uid")):
        raise InvalidAnswerError(f"the answer is no object with a name and a uid: {_quoted(answer)}")
    return dict(answer)


def items_of(answer: Any) -> list[dict[str, Any]]:
    """Return the objects of a list.

    Raises:
        InvalidAnswerError: it is no list of objects.
    """
    items = answer.get("items") if isinstance(answer, dict) and isinstance(answer.get("metadata"), Mapping) else None
    if not isinstance(items, list):
        raise InvalidAnswerError(f"the answer is no list of objects: {_quoted(answer)}")
    return [object_of(item) for item in items]


def confirmed(answer: Any) -> None:
    """Check the answer to a patch or a deletion: the object, or a Status.

    Raises:
        InvalidAnswerError: it is something else, and whether the write was carried out is unknown.
    """
    if not isinstance(answer, dict) or answer.get("kind") != "Status":
        object_of(answer)


def _quoted(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
