"""A fresh run beside results that were kept: which verdicts changed, and which numbers moved."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fluxforge.reproduction._claims import NOT_RUN, claims
from fluxforge.reproduction._part import Document

# A number has moved if it differs by more than this part of the larger of both.
MOVED = 0.1
# Numbers below this are rounding, whatever their ratio.
ROUND_OFF = 1e-12
# What says where a kept result comes from; a run's own document has it elsewhere.
PROVENANCE = frozenset({"command", "commit", "hardware", "seed"})
# What depends on the machine and the day, and not on the method.
PASSING = frozenset(
    {"environment", "took_s", "inputs", "format_version", "start", "whole", "stepping", "largest_by_step"}
)


@dataclass(frozen=True)
class Moved:
    """A number at a place of a document, as it was kept and as it is now."""

    part: str
    where: str
    kept: float | None
    fresh: float | None

    @property
    def change(self) -> float:
        """|fresh − kept| over the larger of both; infinite where one of them is missing."""
        if self.kept is None or self.fresh is None:
            return math.inf
        return abs(self.fresh - self.kept) / max(abs(self.fresh), abs(self.kept))


def compare(fresh: Mapping[str, Document], kept: Mapping[str, Document]) -> dict[str, Any]:
    """Verdicts that differ, claims that one side does not judge, numbers that moved, and parts that one side lacks.

    Numbers are compared where both sides ran at one preset: other sizes give other numbers, and the same verdicts.
    """
    both = [name for name in kept if name in fresh]
    before = {row["claim"]: row["verdict"] for row in claims(kept)}
    pairs = [(row, before[row["claim"]]) for row in claims(fresh)]
    turned = [
        {"claim": row["claim"], "text": row["text"], "kept": was, "fresh": row["verdict"]}
        for row, was in pairs
        if row["verdict"] != was and NOT_RUN not in (row["verdict"], was)
    ]
    parts = [_part(name, fresh[name], kept[name]) for name in both]
    return {
        "verdicts": turned,
        "unjudged": [row["claim"] for row, was in pairs if (row["verdict"] == NOT_RUN) != (was == NOT_RUN)],
        "parts": parts,
        "only_kept": [name for name in kept if name not in fresh],
        "only_fresh": [name for name in fresh if name not in kept],
    }


def _part(name: str, fresh: Document, kept: Document) -> dict[str, Any]:
    presets = {"fresh": fresh.get("preset"), "kept": kept.get("preset")}
    same = presets["fresh"] == presets["kept"]
    numbers = dict(_numbers(fresh))
    told = {key: value for key, value in kept.items() if key not in PROVENANCE}
    pairs = [Moved(name, where, value, numbers.get(where)) for where, value in _numbers(told)] if same else []
    moved = sorted((pair for pair in pairs if _has_moved(pair)), key=lambda pair: -pair.change)
    return {
        "part": name,
        "presets": presets,
        "compared": len(pairs),
        "moved": [asdict(pair) | {"change": None if math.isinf(pair.change) else pair.change} for pair in moved],
    }


def _has_moved(pair: Moved) -> bool:
    if pair.kept is None or pair.fresh is None:
        return True
    return abs(pair.fresh - pair.kept) > ROUND_OFF and pair.change > MOVED


def _numbers(value: Any, where: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a document by its place, but for what passes."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name not in PASSING and "seconds" not in name:
                yield from _numbers(each, f"{where}.{name}" if where else str(name))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for k, each in enumerate(value):
            yield from _numbers(each, f"{where}[{k}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield where, float(value)
