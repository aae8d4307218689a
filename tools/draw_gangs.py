"""Draw docs/images/gangs-local.svg from docs/images/gangs-local.json, which tests/perf/measure_gangs.py wrote."""

import json
from pathlib import Path
from typing import Any

from mxnet_operator.report.drawing import GREY, INK, drawn

IMAGES = Path(__file__).parents[1] / "docs" / "images"
COMPLETE, INCOMPLETE = "#2f7d5b", "#c8553d"


def main() -> None:
    """Write the picture."""
    found = json.loads((IMAGES / "gangs-local.json").read_text())

    def paint(panels: list[Any]) -> None:
        for axes, (way, samples) in zip(panels, found["measured"].items(), strict=True):
            seconds = [sample["s"] for sample in samples]
            layers = [[sample[kind] for sample in samples] for kind in ("complete", "incomplete")]
            labels = ["of jobs of which every pod has a node", "of jobs that wait for more"]
            axes.stackplot(seconds, layers, step="post", colors=[COMPLETE, INCOMPLETE], labels=labels, linewidth=0)
            axes.set_ylim(0, found["gpus"])
            axes.set_ylabel("GPUs held", color=GREY)
            done = f"{samples[-1]['done']} of {len(found['workers'])} jobs done after {seconds[-1]:.0f} s"
            axes.set_title(f"Placed {'as ' if way == 'gangs' else ''}{way}: {done}", loc="left", color=INK, fontsize=11)
        panels[0].legend(loc="lower right", framealpha=0.9)
        panels[-1].set_xlabel("seconds", color=GREY)

    (IMAGES / "gangs-local.svg").write_bytes(drawn("gangs-local", [2.2, 2.2], paint))


if __name__ == "__main__":
    main()
