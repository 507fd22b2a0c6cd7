"""The result of a run whose network is in the form of a flux, as records."""

from fluxforge.run._record import Document, Number, Record
from fluxforge.run.result import FrontTable


class CarryRow(Record, frozen=True, kw_only=True):
    """Errors of one step of one kind of field on an unseen mesh, and whether 1,000 steps of the network blew up.

    An error is the mean |difference to the resolved step| over the mean |change|. `midpoint` is the network's
    integrator, named after the one with two stages; `constants` are the best fixed coefficients, chosen with knowledge
    of the answer; `formula` is the distilled scheme. `blew_up` is at the longest trained Δt, without and with source
    and mixed walls; `conserved` is the relative change of Σ c V u in one step in a closed box.
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
    """The rate of change of a smooth field on squares over that of the equation; 1 in the limit if consistent."""

    cells: int
    rate: Number


class StepRow(Record, frozen=True, kw_only=True):
    """Errors of one step, as in `CarryRow`, at a Δt of the trained range."""

    fourier: float
    field: str
    network: Number
    midpoint: Number


class Stability(Record, frozen=True, kw_only=True):
    """Stability intervals β: |R(z)| ≤ 1 on [−β, 0], of steps on a uniform mesh of triangles.

    For the network and its formulas, whose coefficients depend on Δt, β is the largest for which all Δt up to β/2
    Fourier steps are stable. `integrator` is that of the network's integrator; `rkl2` is (s² + s − 2)/2; `optimum` is
    the largest of any polynomial of degree s and order two, about 0.82 s².
    """

    stages: int
    network: Number
    formula: Number = None
    integrator: Number
    rkl2: Number
    optimum: Number


class CoefficientPoints(Record, frozen=True, kw_only=True):
    """Values of a coefficient by network and formula against `total`, at faces of an unseen mesh, over trained Δt."""

    total: tuple[float, ...]
    network: tuple[float, ...]
    formula: tuple[float | None, ...] = ()


class CarryResult(Record, frozen=True, kw_only=True):
    """The document of a run whose network is in the form of a flux, as `fluxforge discover --json` prints it.

    `kept` is the share of the network's gain over its integrator that the formulas keep, the least over time steps and
    fields; `order` is the order in time that the network has by construction; `steps` are errors over the trained range
    of Δt on the smallest of the meshes.
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
