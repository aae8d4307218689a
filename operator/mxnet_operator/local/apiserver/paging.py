"""Lists at the current or an earlier revision, whole or in pages of one revision."""

import base64
import binascii
from collections.abc import Mapping

import msgspec

from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import Resource
from mxnet_operator.local.apiserver.selectors import Selector
from mxnet_operator.local.apiserver.statuses import bad_request, too_large_version
from mxnet_operator.local.apiserver.storage import name_of
from mxnet_operator.local.apiserver.store import Store


def parse_revision(text: str) -> int:
    """Parse a resourceVersion parameter; 0 for "" and "0".

    Raises:
        StatusError: 400 where it is not a number.
    """
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise bad_request(f'invalid resource version "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)


def read_page(
    store: Store, resource: Resource, namespace: str, selector: Selector, query: Mapping[str, str]
) -> tuple[list[Object], Object]:
    """Read the list for a request's `limit`, `continue`, `resourceVersion` and `resourceVersionMatch`.

    Returns its objects in order, and the list's metadata.

    Raises:
        StatusError: 400, 410 (the revision is too old), 422 or 504 (the revision is in the future).
    """
    limit_text = query.get("limit", "") or "0"
    if not limit_text.isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{limit_text}": invalid syntax')
    limit = int(limit_text)
    start: tuple[str, str] = ("", "")
    if token := query.get("continue", ""):
        revision, start = _decode(token)
    else:
        revision = _asked_revision(store, query)
    past = store.storage.snapshot(resource, revision)
    matching = [
        obj
        for name, each in sorted(past.items())
        if name > start and (not namespace or name[0] == namespace) and selector(obj := resource.present(each))
    ]
    metadata: Object = {"resourceVersion": str(revision)}
    if limit and len(matching) > limit:
        matching = matching[:limit]
        metadata["continue"] = _encode(revision, name_of(matching[-1]))
    return matching, metadata


def _asked_revision(store: Store, query: Mapping[str, str]) -> int:
    asked = parse_revision(query.get("resourceVersion", ""))
    match = query.get("resourceVersionMatch", "")
    if asked > store.storage.revision:
        raise too_large_version(asked, store.storage.revision)
    return asked if asked and match == "Exact" else store.storage.revision


def _encode(revision: int, last: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((revision, last))).decode()


def _decode(token: str) -> tuple[int, tuple[str, str]]:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token), type=tuple[int, tuple[str, str]])
    except (binascii.Error, msgspec.DecodeError, ValueError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
