"""What a sweep says: the state of each point while it runs, and results and recovery rates at its end."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from fluxforge.errors import InputError
from fluxforge.pipeline._run import Run, load_run
from fluxforge.recipe._recipe import Changes
from fluxforge.run._record import Document

Outcome = Literal["finished", "failed"]


class PointStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A point at some moment: its stage in words, and how much of that stage is done (`total` 0 if unknown).

    `result` is None until the point has ended.
    """

    name: str
    stage: str = "waiting"
    done: int = 0
    total: int = 0
    result: "PointResult | None" = None


class PointResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a point ended with.

    - `changes`: the fields that the point sets; `folder`: its run folder, relative to that of the sweep;
    - `outcome`: `finished`, whatever the verdict, or `failed` with an `error`;
    - `verdict`: None of a point that failed, and of a recipe with arms;
    - `formula`: messages and outputs, separated by semicolons, if there is a formula;
    - `loss`, `network_loss`: least loss of the formula, and the network's, on the same problems; of a flux found by
      experiments, relative errors on held-out fluxes;
    - `seconds`: computing time of the run, all its stages together.
    """

    name: str
    changes: Changes
    folder: str
    outcome: Outcome
    verdict: str | None = None
    as_expected: bool | None = None
    formula: str | None = None
    loss: float | None = None
    network_loss: float | None = None
    seconds: float | None = None
    error: str | None = None


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """How many seeds of one combination of the other fields are recovered, with Wilson's interval of 95 %.

    `of` counts the points with a verdict; `failed` ones have none and are not part of the rate.
    """

    changes: Changes
    of: int
    recovered: int
    approximation: int
    refused: int
    failed: int
    rate: float | None
    low: float
    high: float


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep that has ended: its folder, the fields varied, a result per point, and recovery rates."""

    folder: Path
    recipe: str
    over: dict[str, tuple[Any, ...]]
    points: tuple[PointResult, ...]
    rates: tuple[Rate, ...]
    environment: dict[str, str]

    def __repr__(self) -> str:
        verdicts = [point.verdict or point.outcome for point in self.points]
        counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
        return f"Sweep({self.recipe}: {counts}; {self.folder})"

    @property
    def failed(self) -> tuple[PointResult, ...]:
        """The points that ended with an error."""
        return tuple(point for point in self.points if point.outcome == "failed")

    def run(self, name: str) -> Run:
        """The run of a point, by its name; raises InputError if there is no such point, or it is not finished."""
        for point in self.points:
            if point.name == name:
                return load_run(self.folder / point.folder)
        raise InputError(f"{self.folder}: has no point {name!r:.80}; the first is {self.points[0].name!r}")

    def document(self) -> Document:
        """The content of summary.json."""
        plain: Document = msgspec.to_builtins(self, enc_hook=str)
        return plain
