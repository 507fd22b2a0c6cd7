"""The result of a run that discovers a flux for skewed meshes, as records."""

from fluxforge.run._record import Document, Number, Record


class LimitRow(Record, frozen=True, kw_only=True):
    """ψ₂ or ψ₁ + ψ₃: fitted on meshes of three sizes, its limit, and the fraction it was taken as."""

    name: str
    by_size: tuple[float, ...]
    limit: float
    uncertainty: float
    taken: str | None = None
    spread: float


class KindRow(Record, frozen=True, kw_only=True):
    """A flux on one family of meshes with problems of one kind (`waves`, or `sines`, which vanish at the walls).

    L2 errors of held-out steady problems and their order; `error_ratio` is that over the corrected flux's on the same
    meshes and problems, a geometric mean with its standard error `ratio_error`; `share_below` of the problems have a
    smaller error than with the corrected flux.
    """

    kind: str
    errors: tuple[float, ...]
    order: float
    error_ratio: float
    ratio_error: float
    share_below: float


class FamilyRow(Record, frozen=True, kw_only=True):
    """A flux on one family of meshes: L2 errors of held-out steady problems, their order, and the longest stable step.

    `errors` are root mean squares over both kinds of problems, `order` is the least of theirs; `error_ratio`,
    `ratio_error` and `share_below` are those of the kind with the larger error ratio, and `kinds` has both.
    `step_ratio` is the least over the meshes of the step over that of the corrected flux.
    """

    family: str
    cells: tuple[int, ...]
    errors: tuple[float, ...]
    order: float
    error_ratio: float
    ratio_error: float
    share_below: float
    step_ratio: float
    kinds: tuple[KindRow, ...] = ()


class LawRow(Record, frozen=True, kw_only=True):
    """A flux: the objective it was chosen for, ψ and its constants, and what it does on held-out meshes.

    `coercivity` is the least over families and random meshes; `violated` of `meshes` steady fields left the range of
    their walls, by at most `overshoot`.
    """

    name: str
    formula: str
    constants: dict[str, float]
    families: tuple[FamilyRow, ...]
    coercivity: float
    meshes: int
    violated: int
    overshoot: float


class TrialRow(Record, frozen=True, kw_only=True):
    """A choice that the search tried: mean error and mean step over the corrected flux, and the least coercivity.

    `allowed`: whether it meets the conditions of the search.
    """

    error: Number
    step: Number
    coercivity: Number
    allowed: bool = True


class ScoredTrial(Record, frozen=True, kw_only=True):
    """Constants that the search tried: error and step over the corrected flux by family, and the least coercivity."""

    constants: tuple[float, float, float, float]
    error: dict[str, float]
    step: dict[str, float]
    coercivity: float


class SearchStage(Record, frozen=True, kw_only=True):
    """A finished part of the search: the trials that it added, and the constants that it chose, if any."""

    trials: tuple[ScoredTrial, ...]
    chosen: tuple[float, float, float, float] | None = None


class FamilyStage(Record, frozen=True, kw_only=True):
    """All fluxes on one family, by their names."""

    rows: dict[str, FamilyRow]


class StretchedRow(Record, frozen=True, kw_only=True):
    """A flux on stretched meshes: the fields of `LawRow` about them."""

    coercivity: float
    meshes: int
    violated: int
    overshoot: float


class StretchedStage(Record, frozen=True, kw_only=True):
    """All fluxes on stretched meshes, by their names."""

    rows: dict[str, StretchedRow]


class AngleRow(Record, frozen=True, kw_only=True):
    """The network's coefficients between triangles of equal size at one cos θ, and ψ of every law."""

    cosine: float
    network: tuple[float, float, float]
    laws: dict[str, float]


class SkewResult(Record, frozen=True, kw_only=True):
    """What `fluxforge discover --json` prints of such a run; errors of the flux are relative to its size."""

    recipe: str
    seed: int
    member: int = 0
    equation: str
    verdict: str
    expected: str
    as_expected: bool
    reasons: tuple[str, ...]
    samples: int
    network_error: float
    plain_error: float
    consistency: tuple[LimitRow, ...]
    laws: tuple[LawRow, ...] = ()
    trials: tuple[TrialRow, ...] = ()
    angles: tuple[AngleRow, ...] = ()
    findings: tuple[str, ...] = ()
    certificate: Document | None = None
    seconds: dict[str, float]
    environment: dict[str, str]
    conductivity: str = "scalar"
