"""What either route ends with, and what the network itself says of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from fluxforge.data import Problem
from fluxforge.distil import HIDDEN, Fitted, Free, Reading
from fluxforge.expression import to_text
from fluxforge.graph import evaluate_stages
from fluxforge.pde import Equation
from fluxforge.scheme import Scheme, Stage


@dataclass(frozen=True)
class Found:
    """Stages whose numbers are named, those numbers by least loss, and what else a route has to say."""

    free: Free
    fitted: Fitted
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """With the fraction where there is one, the number otherwise."""
        return self.free.filled(self.fitted.chosen)

    def step(self, p: Problem) -> Any:
        """One step of the formula."""
        return evaluate_stages(self.stages, p.graph, p.T, p.S, parameters=p.named)

    def scheme(self, name: str, equation: Equation) -> Scheme:
        """A scheme like any other."""
        summary = f"discovered by the recipe {name}"
        return Scheme(f"discovered-{name}", self.stages, summary=summary, equation=equation)

    def document(self, network_loss: float) -> dict[str, Any]:
        """Formulas, constants and losses as plain JSON."""
        stages, fitted = self.stages, self.fitted
        return {
            "messages": {name: to_text(m.expression) for stage in stages for name, m in stage.messages.items()},
            "outputs": {name: to_text(o.expression) for stage in stages for name, o in stage.outputs.items()},
            "constants": dict(fitted.values),
            "constants_uncertainty": dict(fitted.uncertainty),
            "rational": {name: str(value) for name, value in fitted.rational.items()},
            "loss": {"network": network_loss, "formula": fitted.loss, "rational": fitted.rational_loss},
            **self.more,
        }


@dataclass(frozen=True)
class Own:
    """A formula's constants as the network has them: at each Δt, and in the limit (or in the mean)."""

    readings: tuple[Reading, ...]
    limit: Mapping[str, float]
    uncertainty: Mapping[str, float]

    @property
    def explained(self) -> float:
        """The least share of the network's step that the formula explains, over all Δt."""
        return min(reading.explained for reading in self.readings)

    def agreeing(self, fitted: Fitted) -> dict[str, Fraction]:
        """The fractions that constants of least loss are taken for, as far as the network's own limit allows them.

        It allows what its uncertainty allows, or as much as is excused at each Δt.
        """
        return {
            name: value
            for name, value in fitted.rational.items()
            if not abs(self.limit[name] - value) > max(self.uncertainty[name], HIDDEN * abs(value))
        }

    def filled_into(self, found: Found) -> Found:
        """The formula with the network's constants instead of those of least loss.

        They are not rounded: an approximation that is printed with whole numbers would pass for the scheme itself.
        """
        return replace(
            found, fitted=replace(found.fitted, values=self.limit, uncertainty=self.uncertainty, rational={})
        )

    def document(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """As plain JSON; `rows` are the constants of least loss at shorter and shorter steps, if there are any."""
        read = [
            {
                "step": each.step,
                "constants": dict(each.least),
                "error": dict(each.least_uncertainty),
                "loss": each.loss,
                "network": {**each.own, "unexplained": 1.0 - each.explained},
                "network_uncertainty": dict(each.own_uncertainty),
                "explained_by_least_loss": each.explained_by_least,
            }
            for each in self.readings
        ]
        found = {
            "explained": {"least": self.explained, "by_step": {f"{r.step:.6g}": r.explained for r in self.readings}},
            "limit": dict(self.limit),
            "limit_uncertainty": dict(self.uncertainty),
            "readings": read,
        }
        return found | ({"against_step": sorted([*rows, *read], key=lambda row: -row["step"])} if rows else {})
