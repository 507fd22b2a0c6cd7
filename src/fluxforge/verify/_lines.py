"""Results in words: one line of the certificate per property."""

import math

import numpy as np

from fluxforge.verify._certificate import FamilyResult
from fluxforge.verify._claims import ClaimCheck
from fluxforge.verify._evidence import Line, Verdict, judged
from fluxforge.verify._rates import Rates
from fluxforge.verify.conservation import ROLLOUT, Conservation
from fluxforge.verify.cost import TARGET, Cost, CostCurve
from fluxforge.verify.linearity import Linearity
from fluxforge.verify.maximum import LARGEST, MaximumPrinciple
from fluxforge.verify.modified import ModifiedEquation
from fluxforge.verify.patch import PatchTest
from fluxforge.verify.semidiscrete import SemiDiscrete
from fluxforge.verify.stability import Stability
from fluxforge.verify.time_order import TimeStudy


def linearity_line(found: Linearity, where: str) -> Line:
    """Linearity and the stencil."""
    reach = "reads the whole mesh" if found.hops is None else f"reads {found.hops} hop{'s' * (found.hops != 1)}"
    stencil = f"{reach}, {found.entries_per_row:.1f} cells a row"
    if found.linear:
        return Line("linear in T, S and boundary data", Verdict.HOLDS, f"{stencil}, {where}", "from the algebra")
    evidence = f"F(2T) − F(0) differs from 2(F(T) − F(0)) by {found.defect:.1e} of F(T); {stencil}, {where}"
    return Line("linear in T, S and boundary data", Verdict.FAILS, evidence, "automatic differentiation")


def conservation_line(found: Conservation, where: str) -> Line:
    """Conservation under insulation."""
    parts = []
    if found.defect is not None:
        parts.append(f"max |VᵀM − Vᵀ|/V = {found.defect:.1e} at cell {found.cell}")
    parts.append(f"ΣV·T drifts by {found.drift:.1e} in {ROLLOUT} steps")
    if found.antisymmetric is not None:
        parts.append("fluxes antisymmetric" if found.antisymmetric else "fluxes not antisymmetric")
    return Line("conservative", judged(found.holds), "; ".join(parts) + f"; {where}, insulated", "matrix and rollout")


def generator_line(found: SemiDiscrete) -> Line:
    """Whether the semi-discrete system is the right one."""
    if found.plain_flux <= 1e-10:
        operator = "G is the plain flux L to round-off"
    else:
        operator = (
            f"G differs from the plain flux by {found.plain_flux:.1e}, "
            f"{'keeps' if found.linear_exact else 'does not keep'} linear fields, "
            f"K/α = {found.diffusivity:.4g} on squares"
        )
    source = "S enters as it is" if found.source <= 1e-10 else f"S enters wrongly: |∂N/∂Δt − I| = {found.source:.2g}"
    return Line(
        "generator is L, source is S", judged(found.holds), f"{operator}; {source}", "complex-step ∂M/∂Δt at Δt = 0"
    )


def time_line(found: TimeStudy) -> Line:
    """The order in time."""
    evidence = f"free run {_rates(found.free)}; driven run {_rates(found.driven)}"
    verdict = Verdict.MEASURED if found.order is not None else Verdict.FAILS
    name = f"order in time {_number(found.order)}"
    return Line(name, verdict, evidence, "against the matrix exponential of its own generator")


def space_line(family: str, found: FamilyResult) -> Line:
    """Consistency and order on one family."""
    parts = []
    if found.study is not None:
        errors = " ".join(f"{error:.3e}" for error in found.study.l2.errors)
        parts.append(f"L2 {errors} ({found.study.cells[0]}–{found.study.cells[-1]} cells), {_rates(found.study.l2)}")
        parts.append(f"L∞ {found.study.linf.errors[-1]:.3e} at the finest, order {_number(found.study.linf.order)}")
    if found.diffusivity is not None:
        parts.append(f"K/α = {_tensor(found.diffusivity)}")
    if found.patch is not None and not found.patch.exact(1):
        parts.append(f"a linear field ({found.patch.polynomial}) is not kept at cell {found.patch.cell}")
    name = f"{family}: {_convergence(found)}"
    method = "steady states of a manufactured solution, solved directly"
    return Line(name, judged(found.consistent), "; ".join(parts), method)


def _convergence(found: FamilyResult) -> str:
    """What can be said of the error: a plateau is not the same as rates that do not settle."""
    rates = None if found.study is None else found.study.l2
    if rates is None or rates.exact:
        return "exact" if rates is not None else "not measured"
    if rates.order is not None:
        return f"converges, order {rates.order:.2f}"
    settled = len(rates.errors) > 1 and rates.errors[-1] > 0.8 * rates.errors[-2]
    return "does not converge" if settled else "no order established"


def patch_line(found: PatchTest, where: str) -> Line:
    """Polynomials on one mesh."""
    values = ", ".join(f"degree {k}: {v:.1e}" for k, v in found.residual.items())
    evidence = f"scaled residuals {values}, {where}"
    if not found.exact(1):
        evidence += f"; the field {found.polynomial} is not kept at cell {found.cell}"
    return Line("linear fields are exact", judged(found.exact(1)), evidence, "patch tests with boundary values")


def modified_line(name: str, found: ModifiedEquation) -> Line:
    """The modified equation on a lattice."""
    return Line(f"modified equation, {name}", Verdict.MEASURED, str(found), "exact Taylor expansion of the symbol")


def stability_line(found: Stability, where: str) -> Line:
    """The largest stable step."""
    method = "R(z) exactly; sparse eigenvalues; rollouts at 0.99 and 1.01" if found.one_operator else "spectral radius"
    if found.dt_max is None:
        return Line("stability", Verdict.UNKNOWN, "the scheme is not linear, so it has no amplification factor", method)
    factor = f"R(z) = {found.factor}" if found.one_operator else "not a function of one operator"
    if math.isinf(found.dt_max):
        extra = _oscillating(found)
        return Line("stable at every Δt", Verdict.HOLDS, f"{factor}{extra}", method)
    if found.dt_max == 0:
        return Line("stable at some Δt", Verdict.FAILS, f"{factor}; |R| > 1 for every Δt > 0", method)
    checked = f"rollouts: {_yes(found.stable_below)}stable at 0.99, {_yes(found.diverges_above)}divergent at 1.01"
    ratio = found.dt_max / found.fourier
    name = f"stable up to {ratio:.4g} Δt_Fourier"
    interval = "" if found.interval is None else f", real interval [−{found.interval:.6g}, 0]"
    evidence = f"{factor}{interval}; Δt_max = {found.dt_max:.4g}, {where}; {checked}{_oscillating(found)}"
    agree = found.stable_below is True and found.diverges_above is True
    return Line(name, Verdict.MEASURED if agree else Verdict.FAILS, evidence, method)


def maximum_line(found: MaximumPrinciple, where: str) -> Line:
    """The discrete maximum principle."""
    method = "sign of every entry of ∂T'/∂T and of the boundary's share"
    if found.over_fourier is None:
        return Line("maximum principle", Verdict.HOLDS, f"up to {LARGEST:g} Δt_Fourier at least, {where}", method)
    broken = f"a weight of {found.weight:.1e} at cell {found.cell} beyond" if found.weight is not None else ""
    if found.over_fourier == 0:
        return Line(
            "maximum principle",
            Verdict.FAILS,
            f"at no Δt: a weight of {found.weight:.1e} at cell {found.cell}, {where}",
            method,
        )
    evidence = f"up to {found.over_fourier:.4f} Δt_Fourier; {broken}, {where}"
    return Line("maximum principle", Verdict.MEASURED, evidence, method)


def cost_line(found: Cost, curves: tuple[CostCurve, ...], scheme: str) -> Line:
    """Cost per step, and at equal accuracy."""
    mine = next((curve.bytes_at(TARGET) for curve in curves if curve.scheme == scheme), None)
    others = [
        f"{curve.scheme} {value / mine:.2g}×"
        for curve in curves
        if curve.scheme != scheme and mine and (value := curve.bytes_at(TARGET))
    ]
    evidence = (
        f"{found.stages} stage{'s' * (found.stages != 1)}, {found.flops:.0f} flops, {found.bytes:.0f} bytes moved and "
        f"{found.memory:.0f} held per cell"
    )
    if others:
        evidence += f"; bytes to an error of {TARGET:g} in time, relative to this scheme: {', '.join(others)}"
    return Line(
        "cost of a step", Verdict.MEASURED, evidence, "read off the stepper's arrays; sparse LU factors if implicit"
    )


def claim_line(check: ClaimCheck) -> Line:
    """A claim against its measurement."""
    verdict = Verdict.UNKNOWN if check.holds is None else judged(check.holds)
    return Line(f"claim: {check.property}", verdict, check.words(), "comparison with the lines above")


def _oscillating(found: Stability) -> str:
    if found.oscillation is None or not found.rate:
        return ""
    return f"; the roughest mode changes sign beyond {found.oscillation / found.rate / found.fourier:.3g} Δt_Fourier"


def _rates(rates: Rates) -> str:
    if rates.exact:
        return "exact to round-off"
    return "rates " + " ".join(f"{rate:.2f}" for rate in rates.rates)


def _tensor(K: np.ndarray) -> str:
    return "[" + ", ".join("[" + ", ".join(f"{value + 0.0:.4f}" for value in row) + "]" for row in K.round(10)) + "]"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"


def _yes(value: bool | None) -> str:
    return "" if value else "not "
