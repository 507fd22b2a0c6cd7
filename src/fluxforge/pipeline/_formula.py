"""The formula that a route finds, and its constants as the network has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from fluxforge.data import Problem
from fluxforge.distil import HIDDEN, Fitted, Free, Limit, PowerLaw, Reading
from fluxforge.expression import to_text
from fluxforge.graph import evaluate_stages
from fluxforge.pde import Equation
from fluxforge.pipeline._records import Evidence, Explained, Law, Loss, StepRow
from fluxforge.scheme import Scheme, Stage


@dataclass(frozen=True)
class Formula:
    """Stages whose constants are named, the constants of least loss, and what else the route found."""

    free: Free
    fitted: Fitted
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages with a fraction for each constant that is taken for one, the number otherwise."""
        return self.free.filled(self.fitted.chosen)

    @property
    def messages(self) -> dict[str, str]:
        """The messages as text, by name."""
        return {name: to_text(m.expression) for stage in self.stages for name, m in stage.messages.items()}

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs as text, by name."""
        return {name: to_text(o.expression) for stage in self.stages for name, o in stage.outputs.items()}

    def step(self, p: Problem) -> Any:
        """One step of the formula."""
        return evaluate_stages(self.stages, p.graph, p.T, p.S, parameters=p.named)

    def scheme(self, name: str, equation: Equation) -> Scheme:
        """The formula as a scheme of the equation; `name` is that of the recipe."""
        summary = f"discovered by the recipe {name}"
        return Scheme(f"discovered-{name}", self.stages, summary=summary, equation=equation)

    def losses(self, network_loss: float) -> Loss:
        """Its losses beside the network's."""
        return Loss(network=network_loss, formula=self.fitted.loss, rational=self.fitted.rational_loss)


@dataclass(frozen=True)
class NetworkConstants:
    """A formula's constants as the network has them: at each Δt, and in the limit (or in the mean)."""

    readings: tuple[Reading, ...]
    limit: Mapping[str, float]
    uncertainty: Mapping[str, float]

    @property
    def explained(self) -> Explained:
        """The share of the network's step that the formula explains."""
        by_step = {f"{reading.step:.6g}": reading.explained for reading in self.readings}
        return Explained(least=min(reading.explained for reading in self.readings), by_step=by_step)

    def agreeing(self, fitted: Fitted) -> dict[str, Fraction]:
        """The fractions that constants of least loss are taken for, as far as the network's own limit allows them.

        It allows what its uncertainty allows, or as much as is excused at each Δt.
        """
        return {
            name: value
            for name, value in fitted.rational.items()
            if not abs(self.limit[name] - value) > max(self.uncertainty[name], HIDDEN * abs(value))
        }

    def put_into(self, formula: Formula) -> Formula:
        """The formula with the network's constants instead of those of least loss.

        They are not rounded: an approximation that is printed with whole numbers would pass for the scheme itself.
        """
        fitted = replace(formula.fitted, values=self.limit, uncertainty=self.uncertainty, rational={})
        return replace(formula, fitted=fitted)

    def rows(self) -> tuple[StepRow, ...]:
        """A row per reading."""
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


def limit_rows(limit: Limit) -> tuple[StepRow, ...]:
    """Constants of least loss at shorter and shorter steps."""
    return tuple(StepRow(**row) for row in limit.rows())


def law_record(law: PowerLaw, whole: bool | None = None) -> Law:
    """A power law as a record."""
    return Law(**vars(law), whole=whole)
