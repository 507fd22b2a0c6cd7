"""Results in words: one line of the certificate per property."""

import math

from fluxforge.certify._claims import ClaimCheck
from fluxforge.certify._evidence import Line, Verdict, judged
from fluxforge.certify._space_lines import number, rates_in_words
from fluxforge.certify.conservation import ROLLOUT, Conservation
from fluxforge.certify.cost import TARGET, Cost, CostCurve
from fluxforge.certify.linearity import Linearity
from fluxforge.certify.maximum import LARGEST, MaximumPrinciple
from fluxforge.certify.modified import ModifiedEquation
from fluxforge.certify.rate import Rate
from fluxforge.certify.semidiscrete import SemiDiscrete
from fluxforge.certify.stability import TRIED, Stability
from fluxforge.certify.time_order import TimeStudy
from fluxforge.certify.transient import STEPS, TransientGrowth
from fluxforge.certify.units import SAME as SAME_UNITS
from fluxforge.certify.units import Units
from fluxforge.certify.waves import WaveLimit
from fluxforge.pde import HEAT, Words


def linearity_line(found: Linearity, where: str) -> Line:
    """Linearity and the stencil."""
    reach = "reads the whole mesh" if found.hops is None else f"reads {found.hops} hop{'s' * (found.hops != 1)}"
    stencil = f"{reach}, {found.entries_per_row:.1f} cells a row"
    if found.linear:
        return Line("linear in T, S and boundary data", Verdict.HOLDS, f"{stencil}, {where}", "from the algebra")
    defects = (
        f"f(kT) differs from k f(T) by {found.homogeneity:.1e}, f(T + U) from f(T) + f(U) by {found.additivity:.1e} of "
        f"the largest, f(T) = F(T) − F(0)"
    )
    method = "from the algebra; signed and large states; automatic differentiation"
    return Line("linear in T, S and boundary data", Verdict.FAILS, f"{defects}; {stencil}, {where}", method)


def conservation_line(found: Conservation, where: str) -> Line:
    """Conservation under insulation."""
    parts = []
    if not found.states:
        kept = "antisymmetric" if found.antisymmetric else "not antisymmetric"
        kept += "" if found.passed_on else ", and a cell does not add them up whole"
        evidence = f"fluxes between cells are {kept}; what passes walls and what reacts is left aside"
        return Line("conservative", judged(found.holds), evidence, "from the algebra: F changes sign with its cells")
    if found.defect is not None:
        row = "Vᵀ" if found.weight == "V" else f"({found.weight})ᵀ"
        parts.append(f"max |{row}M − {row}|/{found.weight} = {found.defect:.1e} at cell {found.cell}")
    if found.states > 1:
        states = f"the worst of {found.states} states, signed and large"
        parts.append(f"Σ{found.weight}·T drifts by {found.drift:.1e}, {states}")
    else:
        parts.append(f"Σ{found.weight}·T drifts by {found.drift:.1e} in {ROLLOUT} steps")
    if found.antisymmetric is not None:
        parts.append("fluxes antisymmetric" if found.antisymmetric else "fluxes not antisymmetric")
    return Line("conservative", judged(found.holds), "; ".join(parts) + f"; {where}, insulated", "matrix and rollout")


def units_line(found: Units, words: Words = HEAT.words) -> Line:
    """Whether other units change anything."""
    scaled = f"{words.diffusion} × λ with " if words == HEAT.words else ""
    parts: dict[str, float | None] = {
        "lengths × λ with times × λ²": found.lengths,
        f"{scaled}times / λ": found.times,
        f"{words.unknowns} × anything": found.temperatures,
        "a constant added to all": found.shift,
    }
    changes = "; ".join(f"{name}: {_change(value)}" for name, value in parts.items())
    algebra = f"; from the algebra for every λ: {', '.join(found.algebra)}" if found.algebra else ""
    method = "one step with Dirichlet and Neumann walls, again in other units, λ from 0.001 to 1000; dimensions"
    return Line("unchanged by units", judged(found.holds), changes + algebra, method)


def _change(value: float | None) -> str:
    if value is None:
        return "not asked"
    return "no number" if math.isinf(value) else "same" if value <= SAME_UNITS else f"T' − T changes by {value:.1e}"


def generator_line(found: SemiDiscrete, words: Words = HEAT.words) -> Line:
    """Whether the semi-discrete system is the right one."""
    letter = words.diffusion
    if found.plain:
        operator = "G and the boundary data are the plain flux's to round-off"
    else:
        operator = (
            f"G differs from the plain flux by {found.plain_flux:.1e}, the boundary data by {found.walls:.1e}; "
            f"it {'keeps' if found.linear_exact else 'does not keep'} linear fields"
        )
        if found.smooth is not None:
            operator += f", and smooth fields obey the equation to {found.smooth:.1e} on {found.lattice}"
        else:
            operator += f", K/{letter} = {found.diffusivity:.4g} on {found.lattice}"
        operator += f", a drift of {found.drift:.1e} {letter}" if found.drift else ""
    if found.proportional > 1e-10:
        operator += f"; G is not proportional to {words.parameters}: off by {found.proportional:.1e}"
    source = "S enters as it is" if found.source <= 1e-10 else f"S enters wrongly: |∂N/∂Δt − I| = {found.source:.2g}"
    tried = "α" if words == HEAT.words else "sizes of the parameters"
    method = f"complex-step ∂/∂Δt at Δt = 0, three {tried}, Dirichlet and Neumann walls"
    return Line("generator is L, source is S", judged(found.holds), f"{operator}; {source}", method)


def rate_line(found: Rate) -> Line:
    """Whether a short step of a scheme that is not linear does what the equation says."""
    evidence = f"∂T'/∂Δt at Δt = 0 differs from the equation's own flux, reaction and source by {found.apart:.1e}"
    method = "steps of 1e-5 and 0.5e-5 of the reference step, extrapolated, from three states"
    return Line("generator is the equation's", judged(found.holds), evidence, method)


def time_line(found: TimeStudy) -> Line:
    """The order in time."""
    evidence = f"free run {rates_in_words(found.free)}; driven run {rates_in_words(found.driven)}"
    exact = found.exact_order
    if exact is not None:
        evidence = f"Taylor coefficients of a step agree with the exact solution's up to Δt^{exact}; {evidence}"
        if found.observed is not None and abs(found.observed - exact) > 0.1:
            evidence += f"; at these Δt it looks like {found.observed:.2f}"
    verdict = Verdict.MEASURED if found.order is not None else Verdict.FAILS
    method = "R(z) against e^z exactly; Taylor coefficients on a mesh; runs against the matrix exponential of its own G"
    return Line(f"order in time {number(found.order)}", verdict, evidence, method)


def modified_line(name: str, found: ModifiedEquation, *, heat: bool = True) -> Line:
    """The modified equation on a lattice; of other equations than heat, whether the equation is left as h, Δt → 0."""
    method = "exact Taylor expansion of the symbol"
    if heat:
        return Line(f"modified equation, {name}", Verdict.MEASURED, str(found), method)
    left = "the equation itself" if found.consistent else "another equation"
    evidence = f"{found}; {left} as h{' and Δt go' if found.dt_terms else ' goes'} to 0"
    method += " and of log R" if found.dt_terms else ", Δt → 0"
    return Line(f"modified equation, {name}", judged(found.consistent), evidence, method)


def stability_line(found: Stability, where: str, words: Words = HEAT.words) -> Line:
    """The largest stable step."""
    method = "R(z) exactly; sparse eigenvalues; rollouts at 0.99 and 1.01" if found.one_operator else "spectral radius"
    if found.waves is not None:
        method = "R(z) exactly; eigenvalues or discs around them; plane waves on a lattice; rollout at 0.99"
        where += _waves(found.waves, words)
    if found.dt_max is None:
        reason = "no amplification factor: one cell between walls stays as it is, or is not a rational function of Δt"
        if found.factor is not None:
            reason = "modes grow, as where the flow converges, so that no region around the eigenvalues bounds the step"
            reason += "" if found.waves is None else _waves(found.waves, words)
        return Line("stability", Verdict.UNKNOWN, reason, method)
    factor = f"R(z) = {found.factor}" if found.one_operator else "not a function of one operator, so no R(z) bounds it"
    if found.dt_max == 0:
        reason = "|R| > 1 for every Δt > 0" if found.one_operator else "modes grow at the smallest steps"
        if found.waves is not None:
            axis = "the imaginary axis" if found.waves.on_axis else "a curve that leaves the region at 0"
            reason = f"plane waves on {found.waves.lattice} have eigenvalues on {axis}, where |R| > 1 for every Δt > 0"
        return Line("no step is stable", Verdict.FAILS, f"{factor}; {reason}", method)
    if found.spectral:
        return _spectral_line(found, f"{factor}; {where}", method, words)
    if not found.bound:
        return _tried_line(found, f"{factor}; {where}", method, words)
    if math.isinf(found.dt_max):
        return Line("stable at every Δt", Verdict.HOLDS, f"{factor}{_oscillating(found, words)}", method)
    name = f"stable up to {found.dt_max / found.fourier:.4g} {words.step_symbol}"
    interval = "" if found.interval is None else f", real interval [−{found.interval:.6g}, 0]"
    roughest = _oscillating(found, words)
    evidence = f"{factor}{interval}; Δt_max = {found.dt_max:.4g}, {where}; {_rollouts(found)}{roughest}"
    return Line(name, _confirmed(found), evidence, method)


def _waves(waves: WaveLimit, words: Words) -> str:
    limit = "stable at every Δt" if math.isinf(waves.dt) else f"stable up to {waves.over_reference:.4g}"
    axis = ", their eigenvalues imaginary" if waves.on_axis else ""
    return f"; plane waves on {waves.lattice}: {limit} {words.step_symbol}{axis}".replace(
        f"Δt {words.step_symbol}", "Δt"
    )


def _spectral_line(found: Stability, evidence: str, method: str, words: Words) -> Line:
    """Eigenvalues of a matrix that need not be normal bound no powers of it."""
    assert found.dt_max is not None
    caution = "these are eigenvalues of one mesh, complex ones, and no bound where G is not normal"
    if math.isinf(found.dt_max):
        return Line(
            "no bound: every Δt keeps the eigenvalues stable", Verdict.MEASURED, f"{evidence}; {caution}", method
        )
    name = f"no bound: eigenvalues stable up to {found.dt_max / found.fourier:.4g} {words.step_symbol}"
    return Line(name, _confirmed(found), f"{evidence}; {caution}; {_rollouts(found)}", method)


def _tried_line(found: Stability, evidence: str, method: str, words: Words) -> Line:
    """Steps that were tried and found stable are no bound, and the line says so."""
    assert found.dt_max is not None
    low, high, count = TRIED
    unit = words.step_symbol
    caution = f"{count} steps from {low:g} to {high:g} {unit} were tried on this mesh, those between were not"
    if math.isinf(found.dt_max):
        name = f"no bound: spectral radius at most 1 at every step tried, up to {high:g} {unit}"
        return Line(name, Verdict.MEASURED, f"{evidence}; {caution}", method)
    name = f"no bound: spectral radius at most 1 at steps tried up to {found.dt_max / found.fourier:.4g} {unit}"
    return Line(name, _confirmed(found), f"{evidence}; {caution}; {_rollouts(found)}", method)


def _rollouts(found: Stability) -> str:
    below = f"rollouts: {_yes(found.stable_below)}stable at 0.99"
    return below if found.diverges_above is None else f"{below}, {_yes(found.diverges_above)}divergent at 1.01"


def _confirmed(found: Stability) -> Verdict:
    agree = found.stable_below is True and found.diverges_above is not False
    return Verdict.MEASURED if agree else Verdict.FAILS


def transient_line(found: TransientGrowth, where: str, words: Words = HEAT.words) -> Line:
    """How much perturbations can grow before they decay."""
    at = f"at {found.over_fourier:.4g} {words.step_symbol}, {where}"
    method = "singular values of a step and of its powers, energy norm √ΣV T²"
    if found.normal:
        kind = "a step is symmetric in this norm: no growth beyond its spectrum"
        evidence = f"largest singular value of one step {found.one_step:.6g}; {kind}; {at}"
        return Line("transient growth", Verdict.MEASURED, evidence, method)
    later = "no later power is larger" if found.settled else "still above 1 after the last"
    evidence = (
        f"largest singular value of one step {found.one_step:.6g}; largest norm over {STEPS:,} steps "
        f"{found.largest:.6g}, after {found.steps}; {later}; {at}"
    )
    return Line("transient growth", Verdict.MEASURED, evidence, method)


def maximum_line(found: MaximumPrinciple, where: str, words: Words = HEAT.words) -> Line:
    """The discrete maximum principle; positivity where T' is no average."""
    unit = words.step_symbol
    name = "maximum principle" if found.averages else "positivity"
    method = "sign of every entry of ∂T'/∂T and of the boundary's share"
    if not found.averages:
        method += ", and of what is added without them"
        where += "; no maximum principle: constants do not stay as they are"
    if found.over_fourier is None:
        return Line(name, Verdict.HOLDS, f"up to {LARGEST:g} {unit} at least, {where}", method)
    broken = f"a weight of {found.weight:.1e} at cell {found.cell}" if found.weight is not None else ""
    if found.over_fourier == 0:
        return Line(name, Verdict.FAILS, f"at no Δt: {broken}, {where}", method)
    return Line(name, Verdict.MEASURED, f"up to {found.over_fourier:.4f} {unit}; {broken} beyond, {where}", method)


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
    if not check.asked:
        verdict = Verdict.LEFT_OUT
    return Line(f"claim: {check.property}", verdict, check.words(), "comparison with the lines above")


def _oscillating(found: Stability, words: Words) -> str:
    if found.oscillation is None or not found.rate:
        return ""
    beyond = found.oscillation / found.rate / found.fourier
    return f"; the roughest mode changes sign beyond {beyond:.3g} {words.step_symbol}"


def _yes(value: bool | None) -> str:
    return "" if value else "not "
