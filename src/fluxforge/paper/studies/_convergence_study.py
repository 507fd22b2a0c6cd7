"""The measurements of the convergence study: residuals, errors in time and space, and seconds of every scheme."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge.gnn._network import AbstractNetwork, parameters
from fluxforge.paper.studies._convergence_result import Clock, Grid, MeshFacts, SpaceError
from fluxforge.paper.studies._measures import Subject, graph_of, measure_grid, mesh_facts, seconds_per_step, space_error
from fluxforge.paper.studies._records import Measurements
from fluxforge.paper.studies._tasks import Task, measure_tasks
from fluxforge.run._progress import Progress
from fluxforge.scheme.reference import BUILT_IN

R = TypeVar("R")
SCHEMES = ("euler", "midpoint", "midpoint-printed", "two-hop", "two-hop-printed", "crank-nicolson", "rkl2-8")
SIZES: Mapping[str, tuple[int, ...]] = {
    "quick": (100, 300, 1000, 3000, 10_000),
    "paper": (100, 300, 1000, 3000, 10_000, 30_000, 100_000),
}
FRACTIONS = (8.0, 4.0, 2.0, 1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
# Schemes made for long steps run with them where only the end matters.
LONG = ("crank-nicolson", "rkl2-8")
SPACE_FRACTION, LONG_FRACTION = 0.8, 8.0
# From this many cells on, every scheme is measured in a new process, and one mesh stands for its size.
LARGE = 20_000
# The largest meshes a network is put on: for a thousand steps at most, and for as many as `until` takes, which is n
# times more on n times the cells. A step of a network costs hundreds of times one of a formula.
NETWORK_CELLS: Mapping[str, tuple[int, int]] = {"quick": (1000, 1000), "paper": (100_000, 10_000)}


@dataclass(frozen=True)
class Config:
    """Sizes of the meshes and of the steps, in Fourier steps; `end` is the end time of the error in time, in them too.

    `until` is the end time of the error against the equation, `network_cells` the largest meshes a network is put on
    (for its residual and error in time, and for its error in space), `workers` how many processes measure large
    meshes. `changes` of a recipe have nothing to change here.
    """

    preset: str = "quick"
    changes: recipe.Changes = field(default_factory=dict)
    cells: tuple[int, ...] | None = None
    fractions: tuple[float, ...] = FRACTIONS
    end: float = 64.0
    until: float = 0.02
    seeds: tuple[int, ...] = (1, 2, 3)
    schemes: tuple[str, ...] = SCHEMES
    network_cells: tuple[int, int] | None = None
    workers: int | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of cells given, or the preset's."""
        return SIZES[self.preset] if self.cells is None else self.cells

    @property
    def most(self) -> dict[str, int]:
        """The largest mesh a network is put on, by what is measured."""
        given = NETWORK_CELLS[self.preset] if self.network_cells is None else self.network_cells
        return dict(zip(("grid", "space"), given, strict=True))


@dataclass(frozen=True)
class Study:
    """The measurements of the study: what the folder holds is read, the rest is measured and kept."""

    config: Config
    held: Measurements
    tell: Progress
    networks: Mapping[str, AbstractNetwork]

    def mesh(self, cells: int) -> MeshFacts:
        """The facts of a mesh: steps and limits."""
        schemes = [BUILT_IN[name] for name in self.config.schemes]
        self.tell(f"mesh of {cells} cells", 0, 1)
        seed = self.config.seeds[0]
        key = {"cells": cells, "seed": seed, "schemes": self.config.schemes}
        facts = self.held.measure_once(
            f"mesh {cells}", key, MeshFacts, lambda: mesh_facts(graph_of(cells, seed), schemes)
        )
        return replace(facts, wanted=cells)

    def pairs(self, task: str) -> Iterator[tuple[str, int]]:
        """Every scheme or network, on every mesh it is put on."""
        for cells in self.config.sizes:
            yield from ((name, cells) for name in self.config.schemes)
            yield from ((name, cells) for name in self.networks if cells <= self.config.most[task])

    def grids(self) -> dict[tuple[str, int], Grid]:
        """Residuals and errors in time."""
        own = self.config
        tasks = {
            pair: self._task("grid", pair, own.seeds[0], fractions=own.fractions, end=own.end)
            for pair in self.pairs("grid")
        }
        return dict(zip(tasks, self._measure(list(tasks.values()), Grid, self._measure_grid), strict=True))

    def spaces(self) -> dict[tuple[str, int], list[SpaceError]]:
        """Errors against the equation, for every seed."""
        pairs = [(pair, seed) for pair in self.pairs("space") for seed in self._seeds(pair[1])]
        tasks = [
            self._task("space", pair, seed, until=self.config.until, fraction=step_fraction(pair))
            for pair, seed in pairs
        ]
        found: dict[tuple[str, int], list[SpaceError]] = {}
        for (pair, _), one in zip(pairs, self._measure(tasks, SpaceError, self._measure_space), strict=True):
            found.setdefault(pair, []).append(one)
        return found

    def _seeds(self, cells: int) -> tuple[int, ...]:
        return self.config.seeds[: None if cells < LARGE else 1]

    def clocks(self, pairs: Sequence[tuple[str, int]]) -> dict[tuple[str, int], dict[float, float]]:
        """Seconds a step, one scheme after the other with nothing beside it."""
        found: dict[tuple[str, int], dict[float, float]] = {pair: {} for pair in pairs}
        for k, pair in enumerate(pairs):
            self.tell(f"clock: {pair[0]}, {pair[1]} cells", k, len(pairs))
            for fraction in dict.fromkeys((*self.config.fractions, step_fraction(pair))):
                found[pair][fraction] = self._clock(pair, fraction)
        return found

    def _clock(self, pair: tuple[str, int], fraction: float) -> float:
        name, cells = pair
        task = self._task("clock", pair, self.config.seeds[0], fraction=fraction)

        def measure() -> Clock:
            return Clock(seconds_per_step(self._subject(name), cells=cells, seed=task.seed, fraction=fraction))

        return self.held.measure_once(f"clock {cells} {name}", task, Clock, measure).seconds

    def _subject(self, name: str | None) -> Subject:
        assert name is not None
        return self.networks[name] if name in self.networks else BUILT_IN[name]

    def _task(self, task: Literal["grid", "space", "clock"], pair: tuple[str, int], seed: int, **measured: Any) -> Task:
        name, cells = pair
        weights = _digest(self.networks[name]) if name in self.networks else None
        return Task(task=task, scheme=name, cells=cells, seed=seed, weights=weights, **measured)

    def _measure(self, tasks: Sequence[Task], kind: type[R], here: Callable[[Task], R]) -> list[R]:
        """Each task as it is held, or measured: here, or in a process of its own if it is a scheme on a large mesh."""
        return measure_tasks(
            tasks,
            kind,
            self.held,
            tell=self.tell,
            workers=self.config.workers,
            here=here,
            is_apart=lambda task: task.cells >= LARGE and task.scheme in BUILT_IN,
        )

    def _measure_grid(self, task: Task) -> Grid:
        subject = self._subject(task.scheme)
        return measure_grid(subject, cells=task.cells, seed=task.seed, fractions=task.fractions, end=task.end)

    def _measure_space(self, task: Task) -> SpaceError:
        subject = self._subject(task.scheme)
        return space_error(subject, cells=task.cells, seed=task.seed, fraction=task.fraction, until=task.until)


def step_fraction(pair: tuple[str, int]) -> float:
    """The time step of errors in space, in Fourier steps, for a pair of scheme and size."""
    return LONG_FRACTION if pair[0] in LONG else SPACE_FRACTION


def _digest(network: AbstractNetwork) -> str:
    return hashlib.sha256(np.asarray(parameters(network), np.float64).tobytes()).hexdigest()[:16]
