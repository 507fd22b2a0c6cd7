"""The result of a run whose network is in the form of a flux, as records."""

from fluxforge.run._record import Document, Number, Record
from fluxforge.run.result import FrontTable


class CarryRow(Record, frozen=True, kw_only=True):
    """Errors of one step on one mesh that training did not see, and whether 1,000 steps blew up.

    An error is the mean |difference to the resolved step| over the mean |change|. `midpoint` is the integrator the
    network started as, under the name of the one with two stages; `constants` are the best fixed coefficients, chosen
    with knowledge of the answer; `formula` is the distilled scheme. `blew_up` is of the network at the longest step
    trained with, without and with a source and mixed walls.
    """

    cells: int
    field: str
    fourier: float
    network: Number
    midpoint: Number
    constants: Number
    formula: Number = None
    blew_up: bool
    conserved: Number = None


class EffectiveRow(Record, frozen=True, kw_only=True):
    """The part of the equation's own rate at which a smooth field moves on squares: 1 in the limit of many cells."""

    cells: int
    rate: Number


class StepRow(Record, frozen=True, kw_only=True):
    """Errors of one step, as in `CarryRow`, at another step of the trained range."""

    fourier: float
    field: str
    network: Number
    midpoint: Number


class Stability(Record, frozen=True, kw_only=True):
    """Stability intervals β: |R(z)| ≤ 1 on [−β, 0], of steps on a uniform mesh of triangles.

    Of the network and its formulas, whose coefficients follow the step, the largest β up to which every step of
    β/2 Fourier steps is stable. `integrator` is what the network started as; `rkl2` is (s² + s − 2)/2, `optimum` the
    largest that any polynomial of degree s and order two has, about 0.82 s².
    """

    stages: int
    network: Number
    formula: Number = None
    integrator: Number
    rkl2: Number
    optimum: Number


class CoefficientPoints(Record, frozen=True, kw_only=True):
    """A coefficient at faces of an unseen mesh over the trained steps: of the network, and by the formula."""

    total: tuple[float, ...]
    network: tuple[float, ...]
    formula: tuple[float | None, ...] = ()


class CarryResult(Record, frozen=True, kw_only=True):
    """What `fluxforge discover --json` prints of such a run.

    `kept` is the share of the network's gain over its integrator that the formula keeps, the least over the rows;
    `conserved` in a row the relative change of Σ c V u in a closed box; `order` the order in time that the network has
    by construction. `steps` are errors over the trained steps on the smallest of the meshes.
    """

    recipe: str
    seed: int
    member: int
    equation: str
    integrator: str
    verdict: str
    expected: str
    as_expected: bool
    reasons: tuple[str, ...]
    kept: Number = None
    coefficients: dict[str, str]
    fronts: dict[str, FrontTable]
    carry: tuple[CarryRow, ...] = ()
    steps: tuple[StepRow, ...] = ()
    effective: tuple[EffectiveRow, ...] = ()
    points: dict[str, CoefficientPoints] | None = None
    order: int = 1
    stability: Stability | None = None
    findings: tuple[str, ...] = ()
    certificate: Document | None = None
    skipped: tuple[int, ...] = ()
    seconds: dict[str, float]
    environment: dict[str, str]
