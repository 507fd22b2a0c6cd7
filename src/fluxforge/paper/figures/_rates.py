"""The figure of the rates: how many seeds of each recipe ended in which verdict."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from fluxforge.report import COLOURS, Table, panels

# From what is believed to what is not.
OUTCOMES = {"recovered": COLOURS[2], "approximation": COLOURS[4], "refused": COLOURS[6]}


def rates_figure(result: Mapping[str, Any]) -> Figure:
    """A bar per recipe: seeds recovered, approximated and refused; beside it, how much each seed's formula explains."""
    figure, (counts, explained) = panels(2)
    names = list(result["recipes"])
    for k, name in enumerate(names):
        found, left = result["recipes"][name], 0
        for verdict, colour in OUTCOMES.items():
            count = found["verdicts"].get(verdict, 0)
            counts.barh(k, count, left=left, color=colour, label=verdict if k == 0 else None)
            if count:
                counts.text(left + count / 2, k, str(count), ha="center", va="center", fontsize=8)
            left += count
        values = [row["explained"] for row in found["rows"] if row["explained"] is not None]
        if values:
            explained.plot(values, [k] * len(values), "o", color=COLOURS[0], fillstyle="none", markersize=5)
    for panel in (counts, explained):
        panel.set_yticks(range(len(names)), names)
        panel.set_ylim(len(names) - 0.5, -0.5)
    counts.set_xlabel("seeds")
    counts.set_title("verdicts", fontsize=10)
    counts.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3, frameon=False)
    explained.set_xlabel("least part of the network's step that is explained")
    explained.set_title("a mark per seed" if explained.lines else "not told by these runs", fontsize=10)
    return figure


def rates_table(result: Mapping[str, Any]) -> Table:
    """A row per recipe: what it expects, how many seeds ended in which verdict, and what they share."""
    rows = tuple(_row(name, found) for name, found in result["recipes"].items())
    columns = ("recipe", "expects", *OUTCOMES, "as expected", "explained, median [quartiles]", "seconds, median")
    return Table("Verdicts over the seeds of every recipe", columns, rows)


def _row(name: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    explained = found["medians"].get("explained")
    told = "—" if explained is None else "{median:.4f} [{q1:.4f}, {q3:.4f}]".format(**explained)
    counts = (str(found["verdicts"].get(verdict, 0)) for verdict in OUTCOMES)
    rate, seconds = found["rate"], found["seconds"]["median"]
    return (name, found["expected"], *counts, f"{rate['reached']} of {rate['of']}", told, f"{seconds:.0f}")
