"""What a network is trained for."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from fluxforge.recipe._numbers import Fraction, Weight


class Supervised(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Mean |T' − F(T)|, F the first-order scheme; with norm `l2` the mean square. `per_step` divides by Δt."""

    weight: Weight = 1.0
    norm: Literal["l1", "l2"] = "l1"
    per_step: bool = False


class Residual(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Mean |(T' − T)/Δt − θ (L T' + S) − (1 − θ)(L T + S)|, or the fourth-order `hermite` residual.

    `fourier_power` p divides each mesh's residual by Fo^p, which aims at the limit of small steps.
    """

    weight: Weight = 1.0
    kind: Literal["theta", "hermite"] = "theta"
    theta: Fraction = 0.5
    norm: Literal["l1", "l2"] = "l1"
    fourier_power: Annotated[float, Meta(ge=0, le=16)] = 0.0


class Sparsity(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """η ‖θ‖₁ over all weights and biases; η grows from 0 over the first `warm_up` part of the steps."""

    weight: Weight = 1e-3
    warm_up: Fraction = 0.0


class Loss(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Any sum of named terms, each logged by itself."""

    supervised: Supervised | None = None
    residual: Residual | None = None
    sparsity: Sparsity | None = None
