"""What a scheme says of itself, to be measured against."""

from collections.abc import Mapping
from dataclasses import dataclass, field

FAMILIES = ("squares", "right", "cross", "equilateral", "jittered", "regular", "irregular")


@dataclass(frozen=True)
class Claims:
    """Properties a scheme claims; what is absent (None, or a family not listed) is not claimed.

    - `conservative`: Σ V T does not change under insulation without a source;
    - `linear_exact`: fields linear in x and y are steady to round-off on every mesh;
    - `time_order`: the order in Δt against the exact solution of the scheme's own semi-discrete system;
    - `generator`: that system is dT/dt = L T + S with L the plain flux α A/δ (T_N − T_P) or a consistent one;
    - `space`: per mesh family the order of the steady error, 0 where the error does not fall;
    - `stable_to`: the real stability interval is [−stable_to, 0], infinite if unlimited, 0 if never stable.
    """

    conservative: bool | None = None
    linear_exact: bool | None = None
    time_order: int | None = None
    generator: bool | None = None
    space: Mapping[str, float] = field(default_factory=dict)
    stable_to: float | None = None
