"""The paper's convergence study: residuals, errors in time and in space, and seconds, over mesh size and time step."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np

from fluxforge.errors import InputError
from fluxforge.gnn._network import AbstractNetwork
from fluxforge.paper.studies._convergence_claims import COMPARED, judge
from fluxforge.paper.studies._convergence_result import (
    Choices,
    Grid,
    Limit,
    MeshFacts,
    Orders,
    Result,
    Row,
    SpaceError,
    SpaceRow,
    space_order,
    time_orders,
)
from fluxforge.paper.studies._convergence_study import (
    LARGE,
    LONG,
    LONG_FRACTION,
    SPACE_FRACTION,
    Config,
    Study,
    step_fraction,
)
from fluxforge.paper.studies._measures import FIELD, GROWN, SOURCE
from fluxforge.paper.studies._networks import CARRY, read_networks
from fluxforge.paper.studies._records import open_measurements
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.scheme.reference import BUILT_IN

__all__ = ["Config", "Result", "judge", "run"]

NAME = "convergence"
MOST_NETWORKS = 3


def run(config: Config, folder: Path | None = None, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Measure the grid; measurements that the folder holds are read."""
    _check(config)
    networks = dict(list(read_networks(folder).items())[:MOST_NETWORKS])
    with jax.enable_x64(True), open_measurements(None if folder is None else folder / "grid", warn) as held:
        study = Study(config, held, tell, networks)
        meshes = [study.mesh(cells) for cells in config.sizes]
        grids = study.grids()
        spaces = study.spaces()
        clocks = study.clocks([*dict.fromkeys([*grids, *spaces])])
    rows = [row for each in grids for row in _rows(each, grids[each], clocks, meshes)]
    space = [_space_row(each, spaces, clocks) for each in spaces]
    named = (*config.schemes, *networks)
    return Result(
        experiment=NAME,
        preset=config.preset,
        schemes=list(named),
        networks=_describe_networks(networks, config),
        choices=_choices(config),
        meshes=meshes,
        rows=rows,
        space=space,
        orders={name: Orders(time_orders(name, rows), space_order(name, space)) for name in named},
    )


def _check(config: Config) -> None:
    if stray := [name for name in config.schemes if name not in BUILT_IN]:
        raise InputError(f"there is no built-in scheme {stray[0]!r}; choose from {', '.join(BUILT_IN)}")
    for name in COMPARED:
        if name not in config.schemes:
            raise InputError(f"the claims compare with {name}: add it to the schemes")


def _describe_networks(networks: Mapping[str, AbstractNetwork], config: Config) -> str:
    if not networks:
        return "left out: the experiment higher-order has not been run in this folder, and it trains them"
    grid, space = config.most.values()
    where = f"{grid} cells" if grid == space else f"{grid} cells, for errors in space {space}"
    origin = "from the experiment higher-order" + (f" and the run {CARRY}" if f"network-{CARRY}" in networks else "")
    return f"{', '.join(networks)}: {origin}, on meshes of at most {where}"


def _choices(config: Config) -> Choices:
    return Choices(
        meshes="irregular meshes of the unit square, built-in generator, seed 1 (space: all seeds up to "
        f"{LARGE} cells)",
        residual=f"one step from T = {FIELD}, S = {SOURCE}; mean |θ-residual| over mean |L T + S|",
        error=f"white noise in T₀ (free) and in S (driven) after {config.end:g} Fourier steps against the exact "
        "solution of dT/dt = L T + S, L the plain flux, by scipy's expm_multiply on √V L/√V: as many products as "
        "t λ_max asks for, the same on every mesh; relative L2, the worse of the two runs",
        space="T = (2 − exp(−2π²t)) sin πx sin πy, S = 4π² sin πx sin πy, at t = "
        f"{config.until:g}; Δt is {SPACE_FRACTION} Fourier steps, {LONG_FRACTION:g} of {' and '.join(LONG)}",
        blow_up=f"not finite, or {GROWN:g} times the first and the exact temperatures: its error is null",
        oscillation="2/λ_max: beyond it Crank–Nicolson's fastest mode changes sign at every step",
        seeds=list(config.seeds),
        end=config.end,
        until=config.until,
        fractions=list(config.fractions),
    )


def _rows(
    pair: tuple[str, int],
    grid: Grid,
    clocks: Mapping[tuple[str, int], Mapping[float, float]],
    meshes: Sequence[MeshFacts],
) -> Iterator[Row]:
    mesh = next(mesh for mesh in meshes if mesh.wanted == pair[1])
    limit = mesh.limits.get(pair[0], Limit())
    for row in grid.rows:
        stable = True if limit.unlimited else None if limit.dt is None else row.dt <= limit.dt
        each = clocks[pair][row.fourier]
        yield Row(
            scheme=pair[0],
            wanted=pair[1],
            cells=mesh.cells,
            **vars(row),
            stable=stable,
            seconds_per_step=each,
            seconds=each * row.steps,
        )


def _space_row(
    pair: tuple[str, int],
    spaces: Mapping[tuple[str, int], Sequence[SpaceError]],
    clocks: Mapping[tuple[str, int], Mapping[float, float]],
) -> SpaceRow:
    """Over the seeds: the root mean square error, unless one blew up; the mean size and cost."""
    found, fraction = spaces[pair], step_fraction(pair)
    errors = [one.error for one in found]
    known = [error for error in errors if error is not None]
    whole = float(np.sqrt(np.mean(np.square(known)))) if len(known) == len(errors) else None
    cells = round(float(np.mean([one.cells for one in found])))
    seconds = float(np.mean([one.steps for one in found])) * clocks[pair][fraction]
    return SpaceRow(*pair, cells, fraction, whole, errors, seconds)
