"""The result of the convergence study: meshes, rows over mesh size and time step, errors in space, observed orders."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec import field as named

from fluxforge.certify._studies import Rates


class Limit(Struct, frozen=True):
    """The longest stable step of a scheme; None where there is none, or where it is not known."""

    dt: float | None = None
    unlimited: bool = False


class MeshFacts(Struct, frozen=True):
    """A mesh: its Fourier step, λ_max, 2/λ_max (Crank–Nicolson oscillates beyond it), and limits by scheme.

    `wanted` is the number of cells that was asked for.
    """

    cells: int
    fourier: float
    rate: float | None
    oscillation: float | None
    limits: dict[str, Limit]
    wanted: int = 0


@dataclass(frozen=True)
class TimeErrors:
    """Relative errors of one scheme after so many steps of `fourier` times the Fourier step; None if the run blew up.

    From noise in T without a source (`free`), from noise in S (`driven`), and the larger of both.
    """

    fourier: float
    dt: float
    steps: int
    free: float | None
    driven: float | None
    blew_up: bool
    error: float | None


@dataclass(frozen=True)
class GridRow(TimeErrors):
    """The errors, and the residuals of one step for θ = ½ and 1 over the mean rate of change."""

    residual_half: float | None
    residual_one: float | None


class Grid(Struct, frozen=True):
    """One scheme on one mesh, a row per time step."""

    rows: list[GridRow]


class Clock(Struct, frozen=True):
    """Seconds per step of one scheme on one mesh with one step."""

    seconds: float


@dataclass(frozen=True)
class Place:
    """A scheme on a mesh; `wanted` is the number of cells that was asked for."""

    scheme: str
    wanted: int
    cells: int


# Structs cannot have two bases with fields; of a dataclass the fields of the last base come first.
@dataclass(frozen=True)
class Row(GridRow, Place):
    """A row of the grid with its scheme and mesh, whether its step is within the limit, and its cost."""

    stable: bool | None
    seconds_per_step: float
    seconds: float


class SpaceError(Struct, frozen=True):
    """The relative error of one run against the heat equation; None where it blew up."""

    cells: int
    steps: int
    error: float | None


@dataclass(frozen=True)
class SpaceRow(Place):
    """Errors against the heat equation over the seeds of a size: their root mean square, and each."""

    fourier: float
    error: float | None
    errors: list[float | None]
    seconds: float


class Order(Struct, frozen=True):
    """An observed order, None if the rates between levels do not settle."""

    levels: int
    order: float | None
    rates: list[float | None]


class TimeOrders(Struct, frozen=True):
    """Orders in time on one mesh, without a source and with one."""

    free: Order
    driven: Order


class Orders(Struct, frozen=True):
    """Orders of a scheme: in time by the number of cells asked for, and in space."""

    time: dict[str, TimeOrders]
    space: Order


class Choices(Struct, frozen=True):
    """The choices behind the numbers: meshes, fields, norms, seeds and end times."""

    meshes: str
    residual: str
    error: str
    space: str
    blow_up: str = named(name="blow-up")
    oscillation: str
    seeds: list[int]
    end: float
    until: float
    fractions: list[float]


class Result(Struct, frozen=True):
    """The result of the study."""

    experiment: str
    preset: str
    schemes: list[str]
    networks: str
    choices: Choices
    meshes: list[MeshFacts]
    rows: list[Row]
    space: list[SpaceRow]
    orders: dict[str, Orders]


def time_orders(name: str, rows: Sequence[Row]) -> dict[str, TimeOrders]:
    """By mesh, for the free and the driven run: from the steps that are stable, if there are four at least."""
    # A network has no limit to compare with: its rows count as long as it did not blow up.
    own = [row for row in rows if row.scheme == name and row.stable is not False]
    own.sort(key=lambda row: row.fourier, reverse=True)
    sizes = dict.fromkeys(row.wanted for row in rows if row.scheme == name)
    return {
        str(wanted): TimeOrders(
            free=_fit_order([(row.fourier, row.free) for row in own if row.wanted == wanted]),
            driven=_fit_order([(row.fourier, row.driven) for row in own if row.wanted == wanted]),
        )
        for wanted in sizes
    }


def space_order(name: str, rows: Sequence[SpaceRow]) -> Order:
    """In h = 1/√cells, over the meshes on which nothing blew up."""
    return _fit_order([(row.cells**-0.5, row.error) for row in rows if row.scheme == name])


def _fit_order(pairs: Sequence[tuple[float, float | None]]) -> Order:
    """The order from pairs of step, or mesh size, and error; from the longest step to the shortest."""
    known = [(size, error) for size, error in pairs if error is not None]
    rates = Rates(tuple(size for size, _ in known), tuple(error for _, error in known))
    if len(known) < 2:
        return Order(len(known), None, [])
    return Order(len(known), rates.order, [rate if math.isfinite(rate) else None for rate in rates.rates])
