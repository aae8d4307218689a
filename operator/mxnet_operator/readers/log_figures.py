"""Figures in single log lines of MXNet scripts: of `Module.fit`, the Speedometer, Gluon, Sockeye, GluonCV and GluonNLP.

All spellings share a position (an epoch, a checkpoint, an episode, an iteration; perhaps a batch within it) and, mostly
after it, pairs of a name and a number. tests/unit/readers/test_log_figures.py lists lines of public scripts.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

TIME_COST: Final = "Time cost"
"""Name of the seconds that an epoch took, however a script spells it."""
SPEED: Final = "Speed"
"""Name of the samples per second, however a script spells them."""
EPOCH: Final = "epoch"
UNITS: Final = (EPOCH, "checkpoint", "episode", "iteration")
"""What scripts number: epochs; Sockeye its checkpoints; agents that play, episodes; others have iterations alone."""

ROLES: Final = {
    **dict.fromkeys(("training", "train"), "Train"),
    **dict.fromkeys(("validation", "valid", "val", "evaluation", "eval", "dev"), "Validation"),
    **dict.fromkeys(("testing", "test"), "Test"),
}
_ROLE: Final = "|".join(ROLES)
_NUMBER: Final = r"(?>[-+]?(?:\d{1,30}(?:\.\d{0,30})?(?:e[-+]?\d{1,3})?|\.\d{1,30}|nan|inf))"
_N: Final = r"(?P<n>\d{1,9})(?:\s?/\s?(?P<of>\d{1,9}))?"
_B: Final = r"(?:\d{1,9}-)?(?P<batch>\d{1,9})(?:\]?/\[?\d{1,9})?"
_EPOCH: Final = rf"\bepoch(?:s completed)?\s?[:=#]?\s{{0,4}}\[?{_N}"
_BATCH: Final = rf"(?:batch|step|iteration|iter)\s?[:=#]?\s?\[?{_B}"
_GAP: Final = r"[\]\[\s,:;|]{0,8}"


_POSITIONS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), unit)
    for pattern, unit in (
        (r"\bcheckpoint \[(?P<n>\d{1,9})\]", "checkpoint"),
        (rf"(?:{_EPOCH}|\biter\[{_N.replace('<n>', '<n2>').replace('<of>', '<of2>')}){_GAP}{_BATCH}\]{{0,2}}", EPOCH),
        (rf"{_EPOCH}{_GAP}(?P<batch>\d{{1,9}})/\s{{0,8}}\d{{1,9}} batches", EPOCH),  # epoch   3 |    20/  100 batches
        (rf"\b{_BATCH}{_GAP}{_EPOCH}\]?", EPOCH),  # at iter 20 epoch 3
        (rf"(?:^|[\s:])\[{_N}\]\s?\[{_B}\](?:\[\d+\])?", EPOCH),  # [3/10][20/400]
        (rf"\bepoch:?\s\[(?P<n>\d{{1,9}})\]\s?\[\s?{_B}\]", EPOCH),  # Epoch: [3][20/400]
        (rf"{_EPOCH}\s\[{_B}\s\([^)]{{0,8}}%\)\]", EPOCH),  # Epoch: 3 [640/60000 (1%)]
        (rf"{_EPOCH}(?=\]?[^|%]{{0,40}}\d%\|[^|]{{0,99}}\|\s?{_B})", EPOCH),  # Epoch 3 loss 0.1:  45%|####     | 45/100
        (rf"(?<!best )(?:{_EPOCH}\]?|\biter\[(?P<n2>\d{{1,9}})\])(?![\w/]|\.\d)", EPOCH),
        (rf"(?<!best )\bepisode\s?[:=#]?\s?\[?{_N}\]?(?![\w/]|\.\d)", "episode"),
        (rf"(?<!best )\b(?:iteration|iter|step)\s?[:=#]?\s?\[?{_N}\]?(?![\w/]|\.\d)", "iteration"),
    )
)
_ANY: Final = re.compile(
    r"ep(?:och|isode)|checkpoint|iter(?:ation)?\W{0,4}\d|step\W{0,4}\d|\]\s?\[|^\s*\d+/\d", re.IGNORECASE
)
"""What every line with figures has somewhere: most lines of a log are told apart by it."""
_ALONE: Final = re.compile(rf"\s*epoch:?\s{_N}\s*", re.IGNORECASE)
_BAR: Final = re.compile(r"\s*(?P<batch>\d{1,9})/\d{1,9} \[(?P<bar>[=>.]{5,99})\]")
"""Keras' line of figures, after a line with nothing but the epoch."""
_WHERE: Final = re.compile(r"\[Samples \d+\]|\b(?:rank|node|worker)\s?\[\d{1,5}\]", re.IGNORECASE)
_RANK: Final = re.compile(r"\bNode\[(\d{1,5})\]")
"""The rank of a worker in the logging format of MXNet's own examples (`common/fit.py`)."""
_ARGUMENTS: Final = re.compile(r"\bNamespace\(")
_OVER: Final = re.compile(
    r"\b(?:sav(?:e|ed|ing)|load(?:ed|ing)?|best|improved|previous|higher|lower|changed?)\b", re.IGNORECASE
)
"""Words after which numbers aren't this epoch's figures: `higher than current best 0.4 saving to ...`."""
_BETWEEN: Final = re.compile(
    rf"(?:[\s,;:.|()\[\]{{}}'\"-]|(?:metrics?|{_ROLE})\b(?=\s?[:({{]|\s['\"]))*", re.IGNORECASE
)
_PAIR: Final = re.compile(
    r"(?<![\w.@/-])(?P<name>[a-z][\w.@/-]{0,99}(?:[ _][a-z][\w.@/-]{0,40}){0,4}?)"
    rf"(?P<sign>['\"]?(?:\s?[=:]\s{{0,3}}|\s-\s|,?\s{{1,5}})(?:\[\s?(?=[^\s,\]]+\]))?)(?P<value>{_NUMBER})"
    r"(?P<unit>\s?%|\s?(?:s|secs?|seconds)\b|\s?samples(?:/s(?:ec)?)?\b)?(?=[\s,;|)\]}'\"]|[.:](?!\d)|$)",
    re.IGNORECASE,
)
_RATE: Final = re.compile(rf"(?P<value>{_NUMBER})\s?samples/s(?:ec)?\b", re.IGNORECASE)
_ROLE_BEFORE: Final = re.compile(
    rf"\b(?P<role>{_ROLE})\]?(?: (?:acc|accuracy|loss|mse|rmse))?(?: (?:at|of))? ?\[?$", re.IGNORECASE
)
_ROLE_BETWEEN: Final = re.compile(rf"\b(?P<role>{_ROLE})\b", re.IGNORECASE)
_ROLE_OF_NAME: Final = re.compile(rf"(?:.*[\s_])?(?P<role>{_ROLE})[\s_-]+(?P<measure>.+)", re.IGNORECASE)
_ROLE_AT_END: Final = re.compile(rf"(?P<measure>\S+)[_-](?P<role>{_ROLE})", re.IGNORECASE)
_FILLERS: Final = re.compile(
    r".*\b(?:with|and|at|is|the|current|starting|average|averaged|avg|mean|cumulative|running|completed|over) ",
    re.IGNORECASE,
)
_MEASURE: Final = re.compile(
    r"(?:^|[\s_./@-])(?:acc|\w*accuracy\d*|\w*loss\d*|l|cost|\w*error|err|err-top\d|top-?\d|ppl|perplexity|r?mse|mae|nll|ce"
    r"|(?:log[\s_-])?likelihood|\w*entropy\d*|f1|auc|map|m?iou|pixacc|bleu|recall|precision|prec|score|reward|psnr|ssim|mcc"
    r"|elbo|kl|bpc|[wc]er|hr|hits?|ndcg|corr|r[as]e|speed|throughput)(?:[_@/\d-]\w*)?$",
    re.IGNORECASE,
)
_SYNONYMS: Final = {"acc": "accuracy", "accuracy": "accuracy", "loss": "loss", "ppl": "perplexity"}
_TIMES: Final = frozenset(
    {"time", "time cost", "time-cost", "time used", "cost time", "in", "finished in", "training cost", "time/batch"}
    | {"took", "over"}
)
"""What scripts call the seconds of an epoch; `training cost` is GluonCV's word for them."""
_SPEEDS: Final = frozenset({"speed", "throughput"})
_NO_FIGURES: Final = frozenset(
    {"batch", "batches", "step", "steps", "iter", "iteration", "updates", "updates/sec", "epoch", "epochs", "samples"}
    | {"validation-time", "test-time", "lr", "learning rate", "beta learning rate", "wd", "gnorm"}
)
"""Counters and settings, and seconds that aren't the training's."""
_LONGEST_LINE: Final = 4096
_LONGEST: Final = 1000
"""Characters of a line that are read after its position, or before one at its end."""


class Figures(msgspec.Struct, frozen=True):
    """What one line reports: its position, and the figures by their names."""

    unit: str
    number: int
    of: int | None
    """Number of epochs, where the line tells."""
    batch: int | None
    """Batch within the epoch; None for a line about the whole epoch."""
    values: dict[str, float]


def read_line(line: str, alone: int | None = None) -> Figures | None:
    """Return the figures that a log line reports, under any prefix; None where it has none.

    Args:
        line: Line of a log.
        alone: Epoch of the newest line that had nothing else, by `epoch_alone`: Keras' bars of figures follow it.
    """
    line = line.rstrip().rpartition("\r")[2][:_LONGEST_LINE]  # What a terminal shows: bars write over their line.
    if not _ANY.search(line) or _ARGUMENTS.search(line):
        return None
    if alone is not None and (bar := _BAR.match(line)):
        values = dict(_pairs(line[bar.end() : bar.end() + _LONGEST], "", anchored=False))
        is_whole = set(bar["bar"]) == {"="}
        return Figures(EPOCH, alone, None, None if is_whole else int(bar["batch"]), values) if values else None
    line = _WHERE.sub(" ", line)
    for pattern, unit in _POSITIONS:
        if found := pattern.search(line):
            return _figures(line, found, unit)
    return None


def epoch_alone(line: str) -> tuple[int, int | None] | None:
    """Return the epoch, and of how many, of a line such as Keras' `Epoch 3/10`, which has nothing else."""
    found = _ALONE.fullmatch(line)
    return None if found is None else (int(found["n"]), int(found["of"]) if found["of"] else None)


def rank_in(line: str) -> int | None:
    """Return the rank of the worker that wrote a line, where the line tells; it is not the worker's index."""
    found = _RANK.search(line)
    return int(found[1]) if found else None


def _figures(line: str, found: re.Match[str], unit: str) -> Figures | None:
    groups = found.groupdict()
    number = groups.get("n") or groups.get("n2")
    of, batch = groups.get("of") or groups.get("of2"), groups.get("batch")
    before, after = line[max(found.start() - _LONGEST, 0) : found.start()], line[found.end() : found.end() + _LONGEST]
    role = _ROLE_BEFORE.search(before)
    values = dict(_pairs(after, ROLES[role["role"].lower()] if role else ""))
    if not values and not after.strip(" ."):  # discriminator loss = 0.5 at iter 20 epoch 3
        values = dict(_pairs(before, "", anchored=False))
    if batch is not None and SPEED not in values and (rate := _RATE.search(after)):
        values[SPEED] = float(rate["value"])
    if unit in {"episode", "iteration"} and not any(is_measure(name) for name in values.keys() - {TIME_COST}):
        return None
    if not values or number is None:
        return None
    return Figures(unit, int(number), int(of) if of else None, int(batch) if batch else None, values)


def is_measure(name: str) -> bool:
    """Whether a name is known to measure how good a model is, or how fast."""
    return name in ROLES.values() or _MEASURE.search(name) is not None


def _pairs(text: str, role: str, *, anchored: bool = True) -> Iterator[tuple[str, float]]:
    """Yield the figures of a text. Names with `=` that follow each other are all figures, others if they are known."""
    at = 0
    for pair in _PAIR.finditer(text):
        between = text[at : pair.start()]
        if _OVER.search(between) or _OVER.search(pair["name"]):
            return
        anchored = anchored and _BETWEEN.fullmatch(between) is not None
        if roles := _ROLE_BETWEEN.findall(between):
            role = ROLES[roles[-1].lower()]
        at = pair.end()
        name = _name(pair["name"], role)
        lower = name.lower()
        in_seconds = (pair["unit"] or "").strip().lower() in {"s", "sec", "secs", "seconds"}
        is_known = is_measure(name) or name == TIME_COST
        if lower in _NO_FIGURES or (in_seconds and name != TIME_COST):
            continue
        if not is_known and not (anchored and "=" in pair["sign"]):
            anchored = False
            continue
        value = float(pair["value"])
        yield name, value / 100 if (pair["unit"] or "").strip() == "%" else value


def _name(given: str, role: str) -> str:
    """Return the name of a figure as `Module.fit` would write it."""
    lower = given.lower()
    if lower in _TIMES:
        return TIME_COST
    given = _FILLERS.sub("", given)
    lower = given.lower()
    if lower in _TIMES:
        return TIME_COST
    if lower in _SPEEDS:
        return SPEED
    if lower in _NO_FIGURES:
        return lower
    if lower in ROLES:
        return ROLES[lower]
    if of_name := _ROLE_OF_NAME.fullmatch(given) or _ROLE_AT_END.fullmatch(given):
        role, given = ROLES[of_name["role"].lower()], of_name["measure"]
    measure = _SYNONYMS.get(given.lower(), given)
    name = f"{role}-{measure}" if role else measure
    return TIME_COST if name.lower() == "train-time" else name
