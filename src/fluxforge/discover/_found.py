"""What either route ends with: stages with their constants, and the part of the document that tells of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fluxforge.data import Problem
from fluxforge.distil import Fitted, Free
from fluxforge.expression import to_text
from fluxforge.scheme import Scheme, Stage
from fluxforge.simulate import staged


@dataclass(frozen=True)
class Found:
    """Stages whose numbers are named, those numbers, and what else a route has to say."""

    free: Free
    fitted: Fitted
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """With the rational where there is one, the number otherwise."""
        return self.free.filled(self.fitted.chosen)

    def step(self, p: Problem) -> Any:
        """One step of the formula."""
        return staged(self.stages, p.around, p.T, p.S, parameters={"dt": p.dt, "alpha": p.diffusivity})

    def scheme(self, name: str) -> Scheme:
        """A scheme like any other."""
        return Scheme(f"discovered-{name}", self.stages, summary=f"discovered by the recipe {name}")

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
