"""The result of the symbolic study, and the sentences of the paper's section 4 about formulas judged by it."""

from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from fluxforge.paper.studies._records import Claim, ConstantsRow, Verdict
from fluxforge.paper.studies._seeds import BUILT_IN, ENOUGH, SMALL_STEPS, Rate, Tally, rate_of, weigh
from fluxforge.run._record import Number, Numbers
from fluxforge.run.result import Evaluation, FrontTable

# A constant is exact if it is within this part of α after the refit.
EXACT = 1e-3
PAIRS = "on random pairs of triangles"


class Row(Struct, frozen=True):
    """One network explained by one engine: the formula, its largest distance `off` from the scheme's constants, losses.

    `reason` is the first that speaks against a recovery.
    """

    engine: str
    seed: int
    diffusivity: float
    recovered: bool
    message: str | None
    output: str | None
    constants: Numbers
    off: float | None
    network_loss: Number
    formula_loss: Number
    stencil_difference: Number
    evaluation: Evaluation | None
    reason: str | None
    seconds: float


class Recovery(Struct, frozen=True):
    """The networks of one engine and one α: how many of them were recovered, and the worst constant of those."""

    engine: str
    diffusivity: float
    recovered: int
    of: int
    exact: int
    worst_constant: float | None
    median_seconds: float


class StepConstants(ConstantsRow, frozen=True, kw_only=True):
    """Constants of least residual at one Δt, the flux constant of a pair `alone`, and those of a trained network."""

    alone: float
    network: dict[str, float] | UnsetType = UNSET


class AgainstStep(Struct, frozen=True):
    """Constants of least residual at each Δt, and their limit for small steps."""

    rows: list[StepConstants]
    limit: dict[str, float]
    uncertainty: dict[str, float]


class Result(Struct, frozen=True, kw_only=True):
    """The result of the study; `update` and `data` are absent from documents of older versions.

    With the update "residual" the network is f in T' = T + Δt/V·f, and T + Δt/V is not to be found.
    """

    experiment: str
    preset: str
    engines: list[str]
    update: dict[str, str] | UnsetType = UNSET
    data: str | UnsetType = UNSET
    left_out: dict[str, str]
    rows: list[Row]
    fronts: dict[str, FrontTable]
    recovery: list[Recovery]
    against_step: dict[str, AgainstStep]
    rates: dict[str, Tally] | None


def judge(result: Result) -> list[Claim]:
    """The sentences of section 4 about formulas of networks."""
    return [_judge_supervised(result), _judge_residual(result)]


def _list_conditions(result: Result, name: str) -> list[str]:
    """What is built into a recipe's network; results that do not say are of networks with a residual update."""
    return [BUILT_IN] if (result.update or {}).get(name, "residual") == "residual" else []


def _judge_supervised(result: Result) -> Claim:
    """On this part's own seeds if there are enough of them at one α, otherwise on those of `rates`."""
    found = result.recovery
    good, of = sum(row.exact for row in found), sum(row.of for row in found)
    # Networks of other α start from the same seeds.
    seeds = max((row.of for row in found), default=0)
    rate = Rate(good, of) if seeds >= ENOUGH else rate_of(result.rates, "first-order", "first-order scheme")
    rate = rate or Rate(min(good, seeds), seeds)
    own = result.data != "two-cells"
    conditions = [*_list_conditions(result, "first-order"), *([PAIRS] * own)]
    listed = "; ".join(f"{row.engine}, α = {row.diffusivity:g}: {row.recovered} of {row.of}" for row in found)
    claim = Claim(
        "symbolic-supervised",
        "Symbolic regression of the trained GNN recovers f_agg = α A/δ (T_N − T_P) and f_up = T + Δt/V Σ + Δt S.",
        "holds under a condition" if conditions else "holds",
        f"recovered and certified here: {listed}; {good} of {of} with a constant within {EXACT:g} of α."
        + (" The network is f in T' = T + Δt/V·f: T + Δt/V is given to it, not found." * (BUILT_IN in conditions))
        + (" Trained on random pairs of triangles and steps: on the paper's one pair A, δ and V are constants." * own),
        ", ".join(conditions),
    )
    return weigh(claim, rate)


def _judge_residual(result: Result) -> Claim:
    """What the residual asks for, without a network; and that trained networks give it, on the seeds of `rates`."""
    rows = {name: _nearest_row(found.rows, 0.1) for name, found in result.against_step.items()}
    at = {name: row.constants for name, row in rows.items()}
    limits = [found.limit["c1"] for found in result.against_step.values()]
    sources = [found.limit["a1"] for found in result.against_step.values()]
    exact = all(abs(values[name] - 1.0) <= EXACT for values in at.values() for name in ("c1", "a1"))
    tends = all(abs(limit - 1.0) <= EXACT for limit in (*limits, *sources))
    conditions = [*([SMALL_STEPS] * (not exact)), *_list_conditions(result, "first-order-pinn")]
    verdict: Verdict = "does not hold" if not tends else "holds under a condition" if conditions else "holds"
    listed = "; ".join(f"{name}: flux {values['c1']:.3f} α, source {values['a1']:.3f}" for name, values in at.items())
    claim = Claim(
        "symbolic-residual",
        "The same scheme is recovered from the physics-informed loss alone.",
        verdict,
        f"constants of least residual at αΔt = 0.1: {listed}; in the limit Δt → 0: "
        f"{', '.join(f'{limit:.4f}' for limit in limits)} α, source {', '.join(f'{limit:.4f}' for limit in sources)}."
        + _describe_networks(rows),
        ", ".join(conditions) if verdict == "holds under a condition" else "",
    )
    return weigh(claim, rate_of(result.rates, "first-order-pinn", "first-order scheme"))


def _describe_networks(rows: Mapping[str, StepConstants]) -> str:
    """The constants of the trained networks at that step."""
    listed = "; ".join(
        f"{name}: flux {row.network['c1']:.3f} α, {row.network['unexplained']:.0%} of the step not explained by flux "
        "and source"
        for name, row in rows.items()
        if row.network
    )
    return f" One network trained with each has at that step {listed}." if listed else ""


def _nearest_row(rows: Sequence[StepConstants], step: float) -> StepConstants:
    return min(rows, key=lambda row: abs(row.step - step))
