"""The records of a discovery, from the trained network to its certified formula, and the verdict on the formula.

The verdict says whether the formula is what the network learned. Certificates are findings and decide nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from fluxforge import recipe
from fluxforge.certify._certificate import Certificate
from fluxforge.data._problem import Problem
from fluxforge.distil._constants import LARGEST_HIDDEN, Fitted, Limit, Reading
from fluxforge.distil._front import Front
from fluxforge.distil._objective import Free
from fluxforge.distil._stencil import PowerLaw
from fluxforge.expression._print import to_text
from fluxforge.gnn._network import Network
from fluxforge.graph._stages import evaluate_stages
from fluxforge.pde._equation import Equation
from fluxforge.run.result import Evaluation, Evidence, Explained, FrontRow, FrontTable, Law, StencilCheck, StepRow
from fluxforge.scheme._scheme import Scheme, Stage

Verdict: TypeAlias = Literal["recovered", "approximation", "refused"]
# A formula that explains less of the network's step than this is refused.
LEAST_EXPLAINED = 0.5
# Least number of Δt at which the network must determine a constant; not all, since the constant of a term in Δt² is
# not determined at the shortest.
LEAST_DETERMINED_STEPS = 2
# Relative tolerance by which the refitted loss of a formula may exceed the loss of the law on the same noisy problems:
# a formula that contains the law exceeds it only by the accuracy of the fit. A wrong term of relative size e under
# noise of size s raises the loss by about (e/s)²/2.
NOISE_LOSS_TOLERANCE = 1e-4


def take_step(stages: Sequence[Stage], p: Problem) -> Any:
    """The field of a problem after one step of a scheme with these stages."""
    return evaluate_stages(stages, p.graph, p.T, p.S, parameters=p.step_parameters)


@dataclass(frozen=True)
class Formula:
    """Stages with named constants, the values fitted to them, and the evidence of the route that found the formula."""

    free: Free
    fitted: Fitted
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages with constants filled in: a fraction if the constant is rounded to one, otherwise a float."""
        return self.free.fill_constants(self.fitted.chosen)

    @property
    def messages(self) -> dict[str, str]:
        """The messages as text, by name."""
        return {name: to_text(m.expression) for stage in self.stages for name, m in stage.messages.items()}

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs as text, by name."""
        return {name: to_text(o.expression) for stage in self.stages for name, o in stage.outputs.items()}

    def step(self, p: Problem) -> Any:
        """The field of a problem after one step of the formula."""
        return take_step(self.stages, p)

    def scheme(self, name: str, equation: Equation) -> Scheme:
        """The formula as a scheme of the equation; `name` is that of the recipe."""
        summary = f"discovered by the recipe {name}"
        return Scheme(f"discovered-{name}", self.stages, summary=summary, equation=equation)


@dataclass(frozen=True)
class NetworkConstants:
    """The constants for which a formula describes the network: at each Δt, and in the limit Δt → 0 or on average.

    `readings` are those at each Δt, `uncertainty` is that of `limit`, by name.
    """

    readings: tuple[Reading, ...]
    limit: Mapping[str, float]
    uncertainty: Mapping[str, float]

    @property
    def explained(self) -> Explained:
        """The share of the network's step that the formula explains."""
        by_step = {f"{reading.step:.6g}": reading.explained for reading in self.readings}
        return Explained(least=min(reading.explained for reading in self.readings), by_step=by_step)

    def agreeing_fractions(self, fitted: Fitted) -> dict[str, Fraction]:
        """Those fractions of the constants of least loss that agree with the network's own limit, by name.

        The allowed difference is the uncertainty of the limit or, if larger, `LARGEST_HIDDEN` times the fraction.
        """
        return {
            name: value
            for name, value in fitted.rational.items()
            if not abs(self.limit[name] - value) > max(self.uncertainty[name], LARGEST_HIDDEN * abs(value))
        }

    def put_into(self, formula: Formula) -> Formula:
        """The formula with the network's constants instead of those of least loss.

        They are not rounded: with whole numbers, an approximation could be mistaken for the exact scheme.
        """
        fitted = replace(formula.fitted, values=self.limit, uncertainty=self.uncertainty, rational={})
        return replace(formula, fitted=fitted)

    def rows(self) -> tuple[StepRow, ...]:
        """The readings as records, one row per Δt."""
        return tuple(
            StepRow(
                step=each.step,
                constants=dict(each.least),
                error=dict(each.least_uncertainty),
                loss=each.loss,
                network={**each.own, "unexplained": 1.0 - each.explained},
                network_uncertainty=dict(each.own_uncertainty),
                explained_by_least_loss=each.explained_by_least,
            )
            for each in self.readings
        )


@dataclass(frozen=True)
class TrainedMember:
    """The network of least loss of a training, its index among the seeds, and the steps each seed skipped.

    `member` and `skipped` are None for a network that was not trained by this run.
    """

    network: Network
    member: int | None = None
    skipped: tuple[int, ...] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Distilled:
    """The formula of a network, or the reason why there is none.

    `fronts` are the candidates of each MLP, None for the route `stencil` or if the search stopped before;
    `network_loss` is the network's own loss.
    """

    trained: TrainedMember
    formula: Formula | None
    refusal: str | None
    fronts: Mapping[str, FrontTable] | None
    network_loss: float
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Judged:
    """A verdict, its reasons, and the formula as it is printed, with the measurements of it.

    `fitted` is the formula with the constants of least loss; as an approximation, `formula` has the network's own
    constants instead. Without a formula, all fields after `reasons` but `seconds` are None.
    """

    distilled: Distilled
    verdict: Verdict
    reasons: tuple[str, ...]
    formula: Formula | None
    fitted: Formula | None
    constants: NetworkConstants | None
    stencil: StencilCheck | None
    evaluation: Evaluation | None
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Certified:
    """A judged formula with its certificate; `match` is the name of the built-in scheme that equals it, if any.

    `as_expected` says whether the run ended as its recipe expects. Without a formula, scheme, certificate, match and
    order are None, and there are no findings.
    """

    judged: Judged
    scheme: Scheme | None
    certificate: Certificate | None
    match: str | None
    findings: tuple[str, ...]
    order_in_time: float | None
    as_expected: bool
    seconds: Mapping[str, float]


def limit_rows(limit: Limit) -> tuple[StepRow, ...]:
    """Constants of least loss at shorter and shorter Δt, one row per Δt."""
    return tuple(StepRow(**row._asdict()) for row in limit.rows())


def tabulate_front(front: Front, kind: str, chosen: int | UnsetType | None = UNSET) -> FrontTable:
    """A front as a record; `chosen` is the index of the candidate in the formula, None while there is no formula."""
    rows = tuple(FrontRow(complexity=each.complexity, error=each.error, formula=each.text) for each in front)
    return FrontTable(kind=kind, chosen=chosen, ended_by_clock=front.ended_by_clock, rows=rows)


def law_record(law: PowerLaw, whole: bool | None = None) -> Law:
    """A power law as a record."""
    return Law(**vars(law), whole=whole)


@dataclass(frozen=True)
class Condition:
    """A condition of the verdict `recovered`: whether it holds, and a text with the measured numbers and limits."""

    holds: bool
    text: str

    def __str__(self) -> str:
        return f"{'yes' if self.holds else 'NO'}: {self.text}"


@dataclass(frozen=True)
class Judgement:
    """A verdict and its reasons, the texts of its conditions; the first is about the share of the step explained."""

    verdict: Verdict
    reasons: tuple[str, ...]


def judge(readings: Sequence[Reading], *, threshold: float, law: Condition | None) -> Judgement:
    """Judge a formula by its readings.

    `threshold` is the share of the network's step that a recovery explains at every Δt; `law` is the condition on the
    refitted loss, None for a loss without supervision.
    """
    explains = _condition_on_share(readings, threshold)
    conditions = (explains, *_conditions_on_constants(readings), _condition_on_least_loss(readings, threshold))
    conditions += () if law is None else (law,)
    reasons = tuple(map(str, conditions))
    if not _worst_reading(readings, "explained").explained >= LEAST_EXPLAINED:
        return Judgement("refused", reasons)
    return Judgement("recovered" if all(each.holds for each in conditions) else "approximation", reasons)


def law_condition(loss: float, *, exact: bool, data_error: float) -> Condition:
    """The condition of supervised data: the formula with refitted constants reproduces them up to their noise.

    For noisy data, `loss` is the least loss of the formula and `data_error` that of the law, on the same problems. For
    data without noise, `data_error` is 0, and `exact` says whether the loss is round-off.
    """
    if data_error > 0.0:
        text = (
            f"with refitted constants, the formula's loss is {loss:.5g}; that of the law itself on the same data is "
            f"{data_error:.5g}"
        )
        return Condition(loss <= (1.0 + NOISE_LOSS_TOLERANCE) * data_error, text)
    size = "round-off: it is the law of the data" if exact else "not round-off: the law of the data is a different one"
    return Condition(exact, f"with refitted constants, the formula's loss on exact data is {loss:.2e}, {size}")


def is_expected(spec: recipe.Recipe, verdict: str, order: float | None, scheme: str | None) -> bool:
    """Whether a run ended as its recipe expects; a recovery is also accepted where an approximation is expected.

    `scheme` is the name of the built-in scheme that equals the formula, None if there is none. A recovery from exact
    answers of the equation must equal one; with another law, noise or a residual it need not.
    """
    enough = verdict == "recovered" or verdict == spec.expect
    exact = spec.loss.residual is None and spec.data.law is None and not spec.data.noise
    if verdict == "recovered" and exact and scheme is None:
        return False
    return enough and (spec.order is None or (order is not None and order >= spec.order - 0.1))


def _condition_on_share(readings: Sequence[Reading], threshold: float) -> Condition:
    worst = _worst_reading(readings, "explained")
    text = (
        f"with constants fitted at each Δt, the formula leaves at most {1.0 - worst.explained:.1%} of the network's"
        f" step unexplained (at Δt = {worst.step:.3g}; a recovery allows {1.0 - threshold:.1%})"
    )
    return Condition(worst.explained >= threshold, text)


def _conditions_on_constants(readings: Sequence[Reading]) -> list[Condition]:
    """One condition per constant: where the network determines its value, it agrees with that of least loss."""
    conditions = []
    for name in readings[0].own:
        # Neither network nor loss determines the constant, because another one has the same effect.
        if all(each.own_uncertainty[name] == each.least_uncertainty[name] == math.inf for each in readings):
            continue
        telling = [reading for reading in readings if reading.is_telling(name)]
        if len(telling) < min(LEAST_DETERMINED_STEPS, len(readings)):
            sure = min(reading.own_uncertainty[name] for reading in readings)
            conditions.append(Condition(False, f"the network does not determine {name}: ± {sure:.2g} at best"))
            continue
        worst = max(telling, key=lambda reading: reading.gap(name))
        text = (
            f"{name} at Δt = {worst.step:.3g}: {worst.own[name]:.4g} ± {worst.own_uncertainty[name]:.2g} in the "
            f"network, {worst.least[name]:.4g} ± {worst.least_uncertainty[name]:.2g} by least loss"
        )
        conditions.append(Condition(worst.gap(name) <= 1.0, text))
    return conditions


def _condition_on_least_loss(readings: Sequence[Reading], threshold: float) -> Condition:
    """The condition that constants of least loss, fitted without the network, describe it up to twice the limit."""
    worst = _worst_reading(readings, "explained_by_least")
    text = (
        f"with the constants of least loss, the formula leaves at most {1.0 - worst.explained_by_least:.1%} "
        f"unexplained (at Δt = {worst.step:.3g}; a recovery allows {2.0 * (1.0 - threshold):.1%})"
    )
    return Condition(1.0 - worst.explained_by_least <= 2.0 * (1.0 - threshold), text)


def _worst_reading(readings: Sequence[Reading], share: str) -> Reading:
    """The reading with the least value of the field `share`, where NaN, of a network that overflows, counts as −∞."""
    return min(readings, key=lambda reading: value if math.isfinite(value := getattr(reading, share)) else -math.inf)
