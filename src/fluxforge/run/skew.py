"""The result of a run that discovers a flux for skewed meshes, as records."""

from fluxforge.run._record import Document, Number, Record


class LimitRow(Record, frozen=True, kw_only=True):
    """ψ₂ or ψ₁ + ψ₃, fitted on meshes of three sizes: the values, their limit, and in `taken` the rounded fraction."""

    name: str
    by_size: tuple[float, ...]
    limit: float
    uncertainty: float
    taken: str | None = None
    spread: float


class KindRow(Record, frozen=True, kw_only=True):
    """Errors of a flux on one family of meshes for one kind of problems: `waves`, or `sines`, zero at the walls.

    `errors` are L2 errors of held-out steady problems by size of mesh. `error_ratio` is the geometric mean of the error
    over the corrected flux's on the same mesh and problem, with standard error `ratio_error`; `share_below` is the
    share of the problems whose error is smaller than with the corrected flux.
    """

    kind: str
    errors: tuple[float, ...]
    order: float
    error_ratio: float
    ratio_error: float
    share_below: float


class FamilyRow(Record, frozen=True, kw_only=True):
    """A flux on one family of meshes: L2 errors of held-out steady problems, their order, and the longest stable step.

    `errors` are root mean squares over both kinds of problems, `order` is the smaller of their orders; `error_ratio`,
    `ratio_error` and `share_below` are those of the kind with the larger error ratio; `kinds` has both. `step_ratio` is
    the least ratio over the meshes of the stable step to that of the corrected flux.
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
    """A flux: the objective it was chosen for, ψ₁ as text with its constants, and its validation on held-out meshes.

    `coercivity` is the least over families and random meshes. On `violated` of `meshes` stretched meshes the steady
    field exceeds the range of the values at the walls, by at most `overshoot`.
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
    """A trial of the search: mean error and mean stable step over those of the corrected flux, and least coercivity.

    `allowed` says whether it meets the conditions of the search.
    """

    error: Number
    step: Number
    coercivity: Number
    allowed: bool = True


class ScoredTrial(Record, frozen=True, kw_only=True):
    """Constants of a trial: error and stable step over the corrected flux's by family, and least coercivity."""

    constants: tuple[float, float, float, float]
    error: dict[str, float]
    step: dict[str, float]
    coercivity: float


class SearchStage(Record, frozen=True, kw_only=True):
    """A finished part of the search: the trials that it added, and the constants that it chose, if any."""

    trials: tuple[ScoredTrial, ...]
    chosen: tuple[float, float, float, float] | None = None


class FamilyStage(Record, frozen=True, kw_only=True):
    """The rows of all fluxes on one family of meshes, by name of the flux."""

    rows: dict[str, FamilyRow]


class StretchedRow(Record, frozen=True, kw_only=True):
    """A flux on stretched meshes; the fields are those of `LawRow` with the same names."""

    coercivity: float
    meshes: int
    violated: int
    overshoot: float


class StretchedStage(Record, frozen=True, kw_only=True):
    """The rows of all fluxes on stretched meshes, by name of the flux."""

    rows: dict[str, StretchedRow]


class AngleRow(Record, frozen=True, kw_only=True):
    """The network's coefficients ψ₁, ψ₂, ψ₃ between triangles of equal size at one cos θ, and ψ₁ of every law."""

    cosine: float
    network: tuple[float, float, float]
    laws: dict[str, float]


class SkewResult(Record, frozen=True, kw_only=True):
    """The document of a run for skewed meshes, as `fluxforge discover --json` prints it.

    Errors of the flux are relative to its size.
    """

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
