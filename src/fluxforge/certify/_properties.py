"""Results about one step of a scheme: the records of a certificate besides equations, studies and transport."""

import math
from dataclasses import dataclass

import numpy as np
import sympy as sp


@dataclass(frozen=True)
class Linearity:
    """Linearity and stencil of a step.

    `hops` is the largest graph distance of a cell that is read (None for an implicit scheme, which reads all cells).

    For a scheme that is not linear, two defects of f(T) = F(T) − F(0), relative to the largest |f|, the worst of
    several states, signed, small and large: `homogeneity`, |f(kT) − k f(T)| for k = −1, 2, 10³, 10⁻³ and 10⁻⁶;
    `additivity`, |f(T + U) − f(T) − f(U)|.
    """

    linear: bool
    hops: int | None
    entries_per_row: float
    homogeneity: float = 0.0
    additivity: float = 0.0


@dataclass(frozen=True)
class Conservation:
    """Conservation of ΣW T in a step M with insulated walls.

    `defect`: max over cells of |WᵀM − Wᵀ|/W; `cell`: where it is largest; `drift`: that of ΣW T, relative to ΣW|T|.

    W is the volume V times the capacity c, `weight` in words. If parameters may vary, the results are the worse of
    those for constant and for smoothly varying ones.

    The drift is that of a rollout; for a scheme that is not linear, the worst of `states` runs, single steps and a
    rollout.

    `antisymmetric` says whether each one-hop message of the last stage changes sign when P and N are exchanged
    (None if it has no such message), decided `by` algebra or random points; `passed_on` whether cells add the whole
    messages to their content (None if that was not examined).
    """

    holds: bool
    defect: float | None
    cell: int | None
    drift: float
    antisymmetric: bool | None
    states: int = 1
    passed_on: bool | None = None
    weight: str = "V"
    by: str = "algebra"


# Relative to the largest change in a step. Round-off is about 1e-16 times the largest shift over that change, and the
# change is near 1.
SAME_UNITS = 1e-9


@dataclass(frozen=True)
class Units:
    """By how much T' − T changes with the units, relative to its largest entry, for the worst of several factors.

    `lengths`: lengths × λ, times × λ²; `times`: times / λ; `temperatures`: the unknown × a factor, also −1 where the
    equation is linear, None where the unknown has no unit of its own; `shift`: a constant added, None where constants
    do not solve the equation. `algebra` lists which of the first three follow from the dimensions of the formulas, for
    every λ.
    """

    lengths: float
    times: float
    temperatures: float | None
    shift: float | None
    algebra: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing changes beyond round-off."""
        return max(self.lengths, self.times, self.temperatures or 0.0, self.shift or 0.0) <= SAME_UNITS


@dataclass(frozen=True)
class WaveLimit:
    """The largest stable step `dt` of plane waves on an infinite lattice, `over_reference` of its reference step.

    `on_axis`: the eigenvalues are imaginary, as those of a central flux; then `imaginary` is the y up to which
    |R(iy)| ≤ 1. Numbers are infinite if there is no limit, and 0 if no step is stable.
    """

    lattice: str
    dt: float
    over_reference: float
    on_axis: bool
    imaginary: float


@dataclass(frozen=True)
class Stability:
    """Amplification factor and largest stable step of a scheme on a mesh.

    `factor` is R(z) if the scheme is a function of one operator (`one_operator`), z = Δt times its eigenvalue.

    `interval`: |R| ≤ 1 on [−interval, 0]; infinite if unlimited, 0 if never stable; None without R.
    `dt_max` on the mesh, `fourier` its Fourier step; `rate` the generator's largest |eigenvalue|.
    `oscillation`: the smallest x > 0 with R(−x) ≤ 0, beyond which the roughest mode changes sign at every step.
    `stable_below`: a rollout at 0.99 dt_max was stable; `diverges_above`: one at 1.01 dt_max diverged. None if there is
    no such step. If the equation itself lets fields grow, the former is relative to that growth, and the latter None.

    Only with R is dt_max a bound. Without it, dt_max is the largest step tried up to which the spectral radius was at
    most one: `bound` is False, and steps between those tried may be unstable.

    For an equation with transport, `waves` is the limit of plane waves on an infinite lattice; `spectral` says that
    dt_max comes from the complex eigenvalues of G on the mesh, which bound nothing where G is not normal.
    """

    fourier: float
    factor: sp.Expr | None = None
    one_operator: bool | None = None
    interval: float | None = None
    dt_max: float | None = None
    rate: float | None = None
    oscillation: float | None = None
    stable_below: bool | None = None
    diverges_above: bool | None = None
    waves: WaveLimit | None = None
    spectral: bool = False

    @property
    def bound(self) -> bool:
        """Whether every step up to dt_max is known to be stable."""
        return bool(self.one_operator) and not self.spectral

    @property
    def confirmed(self) -> bool:
        """Whether the rollouts that were made agree with dt_max."""
        return self.stable_below is True and self.diverges_above is not False

    @property
    def over_fourier(self) -> float | None:
        """The ratio of dt_max to the Fourier step; None if unlimited or not established."""
        return None if self.dt_max is None or math.isinf(self.dt_max) else self.dt_max / self.fourier

    @property
    def oscillation_over_fourier(self) -> float | None:
        """The step beyond which the roughest mode changes sign at every step, over the Fourier step, or None."""
        if self.oscillation is None or not self.rate:
            return None
        return self.oscillation / self.rate / self.fourier


# The largest step tried for the maximum principle, in Fourier steps.
LARGEST_STEP = 64.0


@dataclass(frozen=True)
class MaximumPrinciple:
    """The largest step with a discrete maximum principle.

    `over_fourier`: it holds up to that multiple of the Fourier step (0: never; None: at every step that was tried).

    `cell` and `weight`: where it first fails, and the negative weight found there. If `averages` is False, T' is not an
    average of T and boundary values, since constants change or something is added: the result is about positivity.
    """

    over_fourier: float | None
    cell: int | None
    weight: float | None
    averages: bool = True


@dataclass(frozen=True)
class TransientGrowth:
    """Norms of powers of one step in the energy norm √ΣV T², walls at zero, at `over_fourier` Fourier steps.

    `one_step` is the largest singular value of one step; `largest` the largest norm over up to 1,000 steps, after
    `steps` of them. `normal`: the step is symmetric in this norm, so that its spectrum bounds the growth.
    `settled`: some power has a norm of at most one, so that no later one exceeds `largest`.
    """

    over_fourier: float
    normal: bool
    one_step: float
    largest: float
    steps: int
    settled: bool


@dataclass(frozen=True)
class Cost:
    """Multiplications and additions, bytes moved and bytes held, all per cell and step; and the rounds of messages."""

    stages: int
    flops: float
    bytes: float
    memory: float


@dataclass(frozen=True)
class CostCurve:
    """Error in time against bytes moved per cell, for one scheme at several steps."""

    scheme: str
    dt_over_fourier: tuple[float, ...]
    error: tuple[float, ...]
    bytes: tuple[float, ...]

    def bytes_at(self, error: float) -> float | None:
        """Bytes per cell to reach an error: interpolated, or extrapolated below the last error with the last slope.

        At least those of the coarsest step. None if there are fewer than two points, or if `error` is below the last
        one and the bytes do not rise from the last but one point to the last while the error falls.
        """
        if len(self.error) < 2:
            return None
        e, b = np.log(self.error), np.log(self.bytes)
        wanted = np.log(error)
        if wanted >= e[0]:
            return float(self.bytes[0])
        if wanted < e[-1]:
            slope = (b[-1] - b[-2]) / (e[-1] - e[-2])
            return float(np.exp(b[-1] + slope * (wanted - e[-1]))) if slope < 0 else None
        order = np.argsort(e)
        return float(np.exp(np.interp(wanted, e[order], b[order])))
