"""A result above 4 KiB as the hook of its program leaves it."""

import base64
import hashlib
import json
from typing import Any

from mxnet_operator.readers.long_result import PART


def long_result(result: Any, lines: list[bytes]) -> tuple[str, list[bytes]]:
    """What the hook makes of a result above 4 KiB: the termination message, and the log after these lines."""
    text = json.dumps(result).encode()
    digest = hashlib.sha256(text).hexdigest()
    parts = [text[start : start + PART] for start in range(0, len(text), PART)]
    carried = [
        f"mxjob-result {digest} {number}/{len(parts)} {base64.b64encode(part).decode()}".encode()
        for number, part in enumerate(parts, 1)
    ]
    return json.dumps({"mxjobResult": {"bytes": len(text), "sha256": digest}}), [*lines, *carried]
