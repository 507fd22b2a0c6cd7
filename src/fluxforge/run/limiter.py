"""The result of a run that trains a limiter, as records."""

import msgspec

from fluxforge.run._record import Document, Number, Record


class FamilyRow(Record, frozen=True, kw_only=True):
    """A family of closed forms fitted to the network; the best families are refitted on the loss.

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
    """Errors of a limiter on fresh profiles, over CFL-superbee's, and on Jiang's and Shu's wave.

    `fresh` has the ratios by the number of steps, `fresh_error` their standard errors over the profiles, and `worst` is
    the largest ratio; `refit` and `refit_error` are the same on profiles drawn as those of the refit. `jiang_shu` has
    the mean |error| by the Courant number.
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
    """The document of a run that trains a limiter, as `fluxforge discover --json` prints it; `formula` is that of φ."""

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
