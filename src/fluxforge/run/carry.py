"""The result of a run whose network is in the form of a flux, as records."""

from fluxforge.run.result import FrontTable, Number, Record


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


class CarryResult(Record, frozen=True, kw_only=True):
    """What `fluxforge discover --json` prints of such a run.

    `kept` is the share of the network's gain over its integrator that the formula keeps, the least over the rows;
    `conserved` in a row the relative change of Σ c V u in a closed box. `steps` are errors over the trained steps on
    the smallest of the meshes.
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
    findings: tuple[str, ...] = ()
    certificate: dict[str, object] | None = None
    skipped: tuple[int, ...] = ()
    seconds: dict[str, float]
    environment: dict[str, str]
