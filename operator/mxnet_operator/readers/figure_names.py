"""Names of a training's figures: what each measures, and on which data; figures of one unit share a chart."""

import re
from typing import Final

_ROLES: Final = {"train": "training", "validation": "validation", "test": "test"}
_ROLE: Final = re.compile(rf"(?P<role>{'|'.join(_ROLES)})(?:_(?P<measure>.+))?")
_UNITS: Final = (
    (
        "accuracy",
        re.compile(
            r"(.*_)?(accuracy|acc|f1|auc|top_?k?|top\d|precision|recall|m?iou|map|pixacc|hr|hits?|ndcg)(_.*|\d+)?"
        ),
    ),
    ("error", re.compile(r"(err|error)(_.*)?")),
    ("perplexity", re.compile(r"(.*_)?(perplexity|ppl)")),
    ("loss", re.compile(r"(.*_)?\w*(loss|entropy|nll|crossentropy)\d*(_[a-z](_(real|fake))?)?")),
    ("seconds", re.compile(r"time_cost|seconds|.*_seconds|time")),
    ("samples/s", re.compile(r"samples_per_second")),
)


def unit_of(name: str) -> str:
    """Return the unit of a figure by its name in a history: `loss` of `train_cross_entropy`, else what it measures."""
    measure = _measure(name)
    return next((unit for unit, pattern in _UNITS if pattern.fullmatch(measure)), measure)


def is_known(name: str) -> bool:
    return unit_of(name) in {unit for unit, _ in _UNITS}


def words_of(name: str) -> str:
    """Return the name in words: `validation top k accuracy 5`."""
    found = _ROLE.fullmatch(name)
    role = _ROLES[found["role"]] if found else ""
    return f"{role} {_measure(name).replace('_', ' ')}".strip() if _measure(name) else role


def _measure(name: str) -> str:
    found = _ROLE.fullmatch(name)
    return (found["measure"] or "") if found else name
