"""Spans of time as people read them, in `kubectl get` and on our command line alike."""


def short(seconds: float) -> str:
    """`7s`, `3m7s`, `2h3m`, `3d4h`: as kubectl, to two parts."""
    whole = max(0, int(seconds))
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, size)
        if count or parts or unit == "s":
            parts.append((count, unit))
    return "".join(f"{count}{unit}" for position, (count, unit) in enumerate(parts[:2]) if count or not position)
