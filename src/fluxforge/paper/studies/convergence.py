"""The paper's convergence study: residuals, errors in time and in space, and run times, over mesh size and Δt."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import jax
import numpy as np
from msgspec.structs import replace

from fluxforge.errors import InputError
from fluxforge.gnn._network import AbstractNetwork, parameters
from fluxforge.paper.studies._convergence_result import (
    COMPARED_SCHEMES,
    Choices,
    Orders,
    Result,
    Row,
    SpaceRow,
    fit_space_order,
    fit_time_orders,
    judge,
)
from fluxforge.paper.studies._measures import (
    BLOW_UP_RATIO,
    FIELD,
    SOURCE,
    Clock,
    Grid,
    Limit,
    MeshFacts,
    SpaceError,
    Subject,
    make_graph,
    measure_grid,
    measure_mesh,
    measure_seconds,
    measure_space_error,
)
from fluxforge.paper.studies._networks import CARRY, read_networks
from fluxforge.paper.studies._records import StudyConfig
from fluxforge.paper.studies._tasks import Measurements, Task, measure_tasks, open_measurements
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.scheme.reference import BUILT_IN

__all__ = ["Config", "Result", "judge", "run"]

R = TypeVar("R")
# The name of a scheme or network, and the requested number of cells.
Pair: TypeAlias = tuple[str, int]
# Seconds per step, by pair and by Δt in Fourier steps.
Clocks: TypeAlias = Mapping[Pair, Mapping[float, float]]

NAME = "convergence"
MOST_NETWORKS = 3
SCHEMES = ("euler", "midpoint", "midpoint-printed", "two-hop", "two-hop-printed", "crank-nicolson", "rkl2-8")
SIZES: Mapping[str, tuple[int, ...]] = {
    "quick": (100, 300, 1000, 3000, 10_000),
    "paper": (100, 300, 1000, 3000, 10_000, 30_000, 100_000),
}
FRACTIONS = (8.0, 4.0, 2.0, 1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
# Schemes made for long steps: only for these, errors in space are measured with LONG_FRACTION Fourier steps.
LONG_STEP_SCHEMES = ("crank-nicolson", "rkl2-8")
SPACE_FRACTION, LONG_FRACTION = 0.8, 8.0
# From this number of cells on, schemes are measured in new processes, and on one mesh instead of one per seed.
LARGE_MESH = 20_000
# Largest meshes for networks, by preset: in the grid, with a thousand steps at most, and for errors in space, whose
# number of steps grows like the number of cells. A step of a network costs hundreds of times that of a formula.
NETWORK_CELLS: Mapping[str, tuple[int, int]] = {"quick": (1000, 1000), "paper": (100_000, 10_000)}


@dataclass(frozen=True)
class Config(StudyConfig):
    """Sizes of the meshes; time steps `fractions` and end time `end` of the error in time, both in Fourier steps.

    `until` is the end time of the error against the equation, `network_cells` are the largest meshes for networks (for
    residuals and errors in time, and for errors in space), `workers` is the number of processes that measure large
    meshes. `changes` of recipes have no effect on this study.
    """

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
        """The requested numbers of cells: `cells` if given, otherwise those of the preset."""
        return SIZES[self.preset] if self.cells is None else self.cells

    @property
    def most(self) -> tuple[int, int]:
        """The largest numbers of cells for networks: in the grid, and for errors in space."""
        return NETWORK_CELLS[self.preset] if self.network_cells is None else self.network_cells


def run(config: Config, folder: Path, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Measure every scheme and network on every mesh; measurements stored in the folder are read.

    Raises InputError for a scheme that is not built in, or if a scheme is missing that the claims need.
    """
    if stray := [name for name in config.schemes if name not in BUILT_IN]:
        raise InputError(f"there is no built-in scheme {stray[0]!r}; choose from {', '.join(BUILT_IN)}")
    if missing := [name for name in COMPARED_SCHEMES if name not in config.schemes]:
        raise InputError(f"the claims compare with {missing[0]}: add it to the schemes")
    networks = dict(list(read_networks(folder).items())[:MOST_NETWORKS])
    with jax.enable_x64(True), open_measurements(folder, warn) as held:
        study = Study(config, held, tell, networks)
        meshes = {cells: study.mesh(cells) for cells in config.sizes}
        grids = study.grids()
        spaces = study.spaces()
        clocks = study.clocks([*dict.fromkeys([*grids, *spaces])])
    rows = [row for pair, grid in grids.items() for row in _describe_grid(pair, grid, clocks, meshes[pair[1]])]
    space = [_describe_space(pair, errors, clocks) for pair, errors in spaces.items()]
    named = (*config.schemes, *networks)
    return Result(
        experiment=NAME,
        preset=config.preset,
        schemes=list(named),
        networks=_describe_networks(networks, config),
        choices=_describe_choices(config),
        meshes=list(meshes.values()),
        rows=rows,
        space=space,
        orders={name: Orders(fit_time_orders(name, rows), fit_space_order(name, space)) for name in named},
    )


@dataclass(frozen=True)
class Study:
    """The measurements of the study: those stored in the folder are read, the others are made and stored."""

    config: Config
    held: Measurements
    tell: Progress
    networks: Mapping[str, AbstractNetwork]

    def mesh(self, cells: int) -> MeshFacts:
        """The Fourier step and the stability limits of all schemes on the mesh of the first seed."""
        schemes = [BUILT_IN[name] for name in self.config.schemes]
        self.tell(f"mesh of {cells} cells", 0, 1)
        seed = self.config.seeds[0]
        key = {"cells": cells, "seed": seed, "schemes": self.config.schemes}
        facts = self.held.measure_once(
            f"mesh {cells}", key, MeshFacts, lambda: measure_mesh(make_graph(cells, seed), schemes)
        )
        return replace(facts, wanted=cells)

    def grids(self) -> dict[Pair, Grid]:
        """Residuals and errors in time of every scheme and network on every mesh."""
        config = self.config
        tasks = {
            pair: self._task("grid", pair, config.seeds[0], fractions=config.fractions, end=config.end)
            for pair in self._pairs(config.most[0])
        }
        return dict(zip(tasks, self._measure(list(tasks.values()), Grid), strict=True))

    def spaces(self) -> dict[Pair, list[SpaceError]]:
        """Errors against the equation for every seed, on large meshes for the first seed only."""
        seeds = self.config.seeds
        tasks = [
            (pair, self._task("space", pair, seed, until=self.config.until, fraction=step_fraction(pair[0])))
            for pair in self._pairs(self.config.most[1])
            for seed in (seeds if pair[1] < LARGE_MESH else seeds[:1])
        ]
        errors: dict[Pair, list[SpaceError]] = {}
        for (pair, _), one in zip(tasks, self._measure([task for _, task in tasks], SpaceError), strict=True):
            errors.setdefault(pair, []).append(one)
        return errors

    def clocks(self, pairs: Sequence[Pair]) -> dict[Pair, dict[float, float]]:
        """Seconds per step of each pair by Δt, measured one after the other, with no other measurement running."""
        seconds: dict[Pair, dict[float, float]] = {pair: {} for pair in pairs}
        for k, pair in enumerate(pairs):
            self.tell(f"clock: {pair[0]}, {pair[1]} cells", k, len(pairs))
            for fraction in dict.fromkeys((*self.config.fractions, step_fraction(pair[0]))):
                seconds[pair][fraction] = self._clock(pair, fraction)
        return seconds

    def _clock(self, pair: Pair, fraction: float) -> float:
        name, cells = pair
        task = self._task("clock", pair, self.config.seeds[0], fraction=fraction)

        def measure() -> Clock:
            return Clock(measure_seconds(self._subject(name), cells=cells, seed=task.seed, fraction=fraction))

        return self.held.measure_once(f"clock {cells} {name}", task, Clock, measure).seconds

    def _pairs(self, most: int) -> Iterator[Pair]:
        """Every scheme with every size of mesh, and every network with sizes up to `most` cells."""
        for cells in self.config.sizes:
            yield from ((name, cells) for name in self.config.schemes)
            yield from ((name, cells) for name in self.networks if cells <= most)

    def _subject(self, name: str) -> Subject:
        return self.networks[name] if name in self.networks else BUILT_IN[name]

    def _task(self, task: Literal["grid", "space", "clock"], pair: Pair, seed: int, **measured: Any) -> Task:
        name, cells = pair
        weights = _digest(self.networks[name]) if name in self.networks else None
        return Task(task=task, scheme=name, cells=cells, seed=seed, weights=weights, **measured)

    def _measure(self, tasks: Sequence[Task], kind: type[R]) -> list[R]:
        """The results of tasks; built-in schemes on large meshes are measured in new processes."""
        return measure_tasks(
            tasks,
            kind,
            self.held,
            measure=measure_task,
            tell=self.tell,
            workers=self.config.workers,
            here=lambda task: _measure_subject(self._subject(task.scheme or ""), task),
            is_apart=lambda task: task.cells >= LARGE_MESH and task.scheme in BUILT_IN,
        )


def measure_task(task: Task) -> Grid | SpaceError:
    """Measure the grid, or the error in space, of a built-in scheme on a mesh, as the task says."""
    return _measure_subject(BUILT_IN[task.scheme or ""], task)


def _measure_subject(subject: Subject, task: Task) -> Grid | SpaceError:
    if task.task == "grid":
        return measure_grid(subject, cells=task.cells, seed=task.seed, fractions=task.fractions, end=task.end)
    return measure_space_error(subject, cells=task.cells, seed=task.seed, fraction=task.fraction, until=task.until)


def step_fraction(name: str) -> float:
    """The Δt, in Fourier steps, with which errors in space of a scheme or network are measured."""
    return LONG_FRACTION if name in LONG_STEP_SCHEMES else SPACE_FRACTION


def _digest(network: AbstractNetwork) -> str:
    return hashlib.sha256(np.asarray(parameters(network), np.float64).tobytes()).hexdigest()[:16]


def _describe_grid(pair: Pair, grid: Grid, clocks: Clocks, mesh: MeshFacts) -> Iterator[Row]:
    limit = mesh.limits.get(pair[0], Limit())
    for row in grid.rows:
        seconds = clocks[pair][row.fourier]
        yield Row(
            scheme=pair[0],
            wanted=pair[1],
            cells=mesh.cells,
            **vars(row),
            stable=True if limit.unlimited else None if limit.dt is None else row.dt <= limit.dt,
            seconds_per_step=seconds,
            seconds=seconds * row.steps,
        )


def _describe_space(pair: Pair, runs: Sequence[SpaceError], clocks: Clocks) -> SpaceRow:
    """The row over all seeds: root mean square error, None if a run blew up; mean number of cells and run time."""
    fraction = step_fraction(pair[0])
    errors = [one.error for one in runs]
    known = [error for error in errors if error is not None]
    whole = float(np.sqrt(np.mean(np.square(known)))) if len(known) == len(errors) else None
    cells = round(float(np.mean([one.cells for one in runs])))
    seconds = float(np.mean([one.steps for one in runs])) * clocks[pair][fraction]
    return SpaceRow(*pair, cells, fraction, whole, errors, seconds)


def _describe_networks(networks: Mapping[str, AbstractNetwork], config: Config) -> str:
    if not networks:
        return "left out: they are trained by the experiment higher-order, which has not been run in this folder"
    grid, space = config.most
    where = f"{grid} cells" if grid == space else f"{grid} cells, for errors in space {space}"
    origin = "from the experiment higher-order" + (f" and the run {CARRY}" if f"network-{CARRY}" in networks else "")
    return f"{', '.join(networks)}: {origin}, on meshes of at most {where}"


def _describe_choices(config: Config) -> Choices:
    return Choices(
        meshes="irregular meshes of the unit square, built-in generator, seed 1 (space: all seeds up to "
        f"{LARGE_MESH} cells)",
        residual=f"one step from T = {FIELD}, S = {SOURCE}; mean |θ-residual| over mean |L T + S|",
        error=f"white noise in T₀ (free) and in S (driven) after {config.end:g} Fourier steps against the exact "
        "solution of dT/dt = L T + S, L the plain flux, by scipy's expm_multiply on √V L/√V: as many products as "
        "t λ_max requires, the same on every mesh; relative L2, the worse of the two runs",
        space="T = (2 − exp(−2π²t)) sin πx sin πy, S = 4π² sin πx sin πy, at t = "
        f"{config.until:g}; Δt is {SPACE_FRACTION} Fourier steps, {LONG_FRACTION:g} of "
        f"{' and '.join(LONG_STEP_SCHEMES)}",
        blow_up=f"not finite, or {BLOW_UP_RATIO:g} times the first and the exact temperatures: its error is null",
        oscillation="2/λ_max: beyond it Crank–Nicolson's fastest mode changes sign at every step",
        seeds=list(config.seeds),
        end=config.end,
        until=config.until,
        fractions=list(config.fractions),
    )
