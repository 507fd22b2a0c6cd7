"""The result of a run that trains a limiter, as records."""

import msgspec

from fluxforge.run._record import Document, Number, Record


class FamilyRow(Record, frozen=True, kw_only=True):
    """A family of closed forms, fitted to the network and, of the best, refitted on the loss.

    `misfit` is the root mean square of φ − φ_network over the upper bound, `loss` the worst of the ratios to
    CFL-superbee's error before the refit. `constants` are the refitted ones, rounded, where there is a refit.
    """

    name: str
    summary: str
    continuous: bool
    misfit: Number
    loss: Number
    constants: tuple[float, ...]
    refitted: bool


class LimiterRow(Record, frozen=True, kw_only=True):
    """What was measured of a limiter: errors over CFL-superbee's on fresh profiles by the number of steps, and the mean
    |error| on Jiang's and Shu's wave by the Courant number. `worst` is the largest of the ratios, `fresh_error` their
    standard errors over the profiles; `refit` and `refit_error` are the same on profiles drawn as those of the refit.
    """

    name: str
    formula: str | None = None
    continuous: bool | None = None
    fresh: dict[str, Number]
    fresh_error: dict[str, Number] = msgspec.field(default_factory=dict)
    refit: dict[str, Number] = msgspec.field(default_factory=dict)
    refit_error: dict[str, Number] = msgspec.field(default_factory=dict)
    worst: Number
    jiang_shu: dict[str, Number]
    in_region: bool | None = None


class LimiterResult(Record, frozen=True, kw_only=True):
    """What `fluxforge discover --json` prints of such a run; `formula` is φ(r, c) of `scheme.json`."""

    recipe: str
    seed: int
    member: int
    equation: str
    verdict: str
    expected: str
    as_expected: bool
    reasons: tuple[str, ...]
    formula: str
    limiters: tuple[LimiterRow, ...]
    families: tuple[FamilyRow, ...]
    stuck: tuple[int, ...] = ()
    shares: tuple[tuple[Number, ...], ...] = ()
    findings: tuple[str, ...] = ()
    certificate: Document | None = None
    seconds: dict[str, float]
    environment: dict[str, str]
