"""Rules for labels and annotations, in kube-apiserver's words: the same for every kind of object."""

import functools
import re
from collections.abc import Iterator, Mapping

from mxnet_operator.api.structural import FieldError, invalid

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_QUALIFIED_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_PREFIX_RULE = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_ANNOTATIONS_LIMIT = 256 * 1024


def label_errors(labels: Mapping[str, str], path: str) -> Iterator[FieldError]:
    for key, value in labels.items():
        if not _is_key(key):
            yield from key_errors(key, path, key)
        for rule in broken_value_rules(value):
            yield invalid(path, value, rule)


def broken_value_rules(value: str) -> Iterator[str]:
    if len(value.encode(errors="surrogatepass")) > 63:
        yield "must be no more than 63 bytes"
    if not _LABEL_VALUE.fullmatch(value):
        yield _LABEL_VALUE_RULE


def annotation_errors(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the errors in a map of annotations, whose keys are labels' but for their case."""
    for key in annotations:
        yield from key_errors(key.lower(), path, key)
    size = sum(len(key) + len(value) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        detail = f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes"
        yield FieldError(path, "FieldValueTooLong", detail)


def key_errors(key: str, path: str, shown: str) -> Iterator[FieldError]:
    """Yield the errors in the key of a label or annotation, or in a finalizer; messages quote `shown` as the value."""
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        yield invalid(path, shown, f"a valid label key {_QUALIFIED_RULE} {_PREFIX_RULE}")
        return
    for prefix in prefixes:
        if not prefix:
            yield invalid(path, shown, "prefix part must be non-empty")
            continue
        if len(prefix) > 253:
            yield invalid(path, shown, "prefix part must be no more than 253 bytes")
        if not SUBDOMAIN.fullmatch(prefix):
            yield invalid(path, shown, f"prefix part {SUBDOMAIN_RULE}")
    if not name:
        yield invalid(path, shown, "name part must be non-empty")
    elif len(name) > 63:
        yield invalid(path, shown, "name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        yield invalid(path, shown, f"name part {_QUALIFIED_RULE}")


@functools.lru_cache(maxsize=1024)
def _is_key(key: str) -> bool:
    """Return whether a label's key is valid; cached, since the same few come with every object."""
    return not any(key_errors(key, "", key))
