"""Stability: the amplification factor R(z), its real interval, and the largest stable step on a mesh or a lattice.

On an infinite lattice the eigenvalues are those of its symbol, Σ G e^{ik·d}, at every wave number k, compared with the
region |R(z)| ≤ 1 of the complex plane. On a finite mesh with inflow, walls or a triangular matrix may hide that a wave
grows; on the lattice they cannot.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import sympy as sp

from fluxforge.certify._evidence import Line, Verdict
from fluxforge.certify._families import lattice_graph
from fluxforge.certify._properties import Stability, WaveLimit
from fluxforge.certify._systems import last_holding, period_rows, study_step
from fluxforge.errors import NumericalError
from fluxforge.expression._symbols import symbol
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings, exchange_weights
from fluxforge.pde._equation import HEAT
from fluxforge.pde._words import Words
from fluxforge.scheme._linear import amplification, linear_stages
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import generator, step_matrix
from fluxforge.stepping._field import linear_reaction
from fluxforge.stepping._limit import fastest_eigenvalues, is_one_operator, real_interval, step_limit

# Steps of a rollout, the size at which it has diverged, and its last steps over which growth is measured.
STEPS = 3000
BLOW_UP_RATIO = 1e9
WATCHED_STEPS = 100
# Up to this many cells all eigenvalues are computed; a real part above this share of the largest modulus is growth.
MOST_DENSE_CELLS = 600
GROWTH_TOLERANCE = 1e-10
# Steps tried for schemes without R: the shortest and the longest, over the Fourier step, and their number.
TRIED_STEPS = (1e-3, 1e3, 49)


def measure_stability(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> Stability:
    """The stability of a scheme on a graph, with boundary data of zero."""
    fourier = study_step(scheme, graph, parameters)
    factor = amplification(scheme) if linear_stages(scheme) is not None else None
    if factor is None:
        return Stability(fourier)
    one_operator = is_one_operator(scheme)
    known = Stability(fourier, factor, one_operator)
    reaction = linear_reaction(scheme.equation, graph, parameters)
    growth = 0.0 if reaction is None else reaction.growth
    if one_operator and scheme.equation.velocity is not None:
        return _measure_transport(known, scheme, graph, factor, parameters=parameters, growth=growth)
    if one_operator:
        bound = step_limit(scheme, graph, parameters=parameters)
        if bound is None:
            return known
        limit, rate = bound.dt, bound.rate
    else:
        G = generator(scheme, graph, parameters=parameters).M
        rate = float(np.abs(fastest_eigenvalues(G)).max())
        growing = (
            graph.cells <= MOST_DENSE_CELLS
            and np.linalg.eigvals(G.toarray()).real.max() > growth + GROWTH_TOLERANCE * rate
        )
        limit = 0.0 if growing else _scan_steps(scheme, graph, parameters=parameters, start=fourier)
    below, above = _roll_out(scheme, graph, limit, parameters=parameters, growth=growth)
    interval, oscillation = (real_interval(factor), _oscillation(factor)) if one_operator else (None, None)
    return Stability(fourier, factor, one_operator, interval, limit, rate, oscillation, below, above)


def find_largest_step(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> float | None:
    """The largest stable step, from R(z) if there is one, otherwise the largest of the steps tried; None if unknown."""
    limit = step_limit(scheme, graph, parameters=parameters)
    return limit.dt if limit is not None else measure_stability(scheme, graph, parameters=parameters).dt_max


def _measure_transport(
    known: Stability, scheme: Scheme, graph: DualGraph, factor: sp.Expr, *, parameters: Settings | None, growth: float
) -> Stability:
    """The stability with transport: discs around the eigenvalues if they bound the step, or else the eigenvalues.

    Waves on a lattice are examined, too: one that grows at every Δt makes the scheme unstable, even if walls damp it on
    this mesh.
    """
    family = "cubes" if graph.dimension == 3 else "squares"
    constant = {**scheme.equation.example(graph.dimension), **(parameters or {})}
    waves = wave_limit(scheme, factor, family, parameters=constant)
    known = replace(known, waves=waves)
    if waves is not None and waves.dt == 0:
        return replace(known, interval=0.0, dt_max=0.0)
    discs = step_limit(scheme, graph, parameters=parameters)
    if discs is not None:
        limit, rate = discs.dt, discs.rate
    else:
        G = generator(scheme, graph, parameters=parameters).M
        values = np.linalg.eigvals(G.toarray()) if graph.cells <= MOST_DENSE_CELLS else np.empty(0)
        rate = float(np.abs(values).max(initial=0.0))
        if not len(values) or values.real.max() > growth + GROWTH_TOLERANCE * rate:
            return known
        limit = spectral_limit(factor, np.where(values.real > 0, 1j * values.imag, values))
    below, _ = _roll_out(scheme, graph, limit, parameters=parameters, growth=growth)
    return replace(
        known,
        interval=real_interval(factor),
        dt_max=limit,
        rate=rate,
        oscillation=_oscillation(factor),
        stable_below=below,
        spectral=discs is None,
    )


def _oscillation(factor: sp.Expr) -> float | None:
    """The smallest x > 0 with R(−x) = 0; None if there is none."""
    numerator, _ = sp.fraction(sp.together(factor))
    if not numerator.free_symbols:
        return None
    z = next(iter(numerator.free_symbols))
    roots = [-float(root) for root in sp.Poly(numerator, z).real_roots() if root < 0]
    return min(roots) if roots else None


def _roll_out(
    scheme: Scheme, graph: DualGraph, limit: float, *, parameters: Settings | None, growth: float
) -> tuple[bool | None, bool | None]:
    """Whether steps of 0.99 times a limit are stable, and whether those of 1.01 diverge; None if not tested.

    Steps beyond the limit are not tested if the equation itself lets fields grow, since they need not grow faster then,
    nor with transport, where discs or eigenvalues bound the step from one side only.
    """
    if not 0 < limit < math.inf:
        return None, None
    below = not _grows(scheme, graph, 0.99 * limit, parameters=parameters, growth=growth)
    if scheme.equation.velocity or growth:
        return below, None
    return below, _grows(scheme, graph, 1.01 * limit, parameters=parameters)


def _grows(scheme: Scheme, graph: DualGraph, dt: float, *, parameters: Settings | None, growth: float = 0.0) -> bool:
    """Whether noise, without source or boundary data, finally grows from step to step, faster than e^{growth t}."""
    M = step_matrix(scheme, graph, dt, parameters=parameters) * math.exp(-growth * dt)
    T = np.random.default_rng(0).standard_normal(graph.cells)
    for step in range(STEPS):
        T = M @ T
        size = np.linalg.norm(T)
        if not 0 < size < BLOW_UP_RATIO:
            return bool(size != 0)
        if step == STEPS - WATCHED_STEPS - 1:
            before = size
    return bool(size > before * (1 + 1e-6) ** WATCHED_STEPS)


def _scan_steps(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None, start: float) -> float:
    """The largest Δt up to which the spectral radius of M(Δt) was at most 1 at all steps tried, from short to long.

    It is not a bound, since steps between those tried may be unstable.
    """

    def stable(dt: float) -> bool:
        values = fastest_eigenvalues(step_matrix(scheme, graph, dt, parameters=parameters))
        return bool(np.abs(values).max() <= 1 + 1e-10)

    return last_holding(stable, start * np.geomspace(*TRIED_STEPS), halvings=40)


def stability_line(stability: Stability, where: str, words: Words = HEAT.words) -> Line:
    """The line on the largest stable step."""
    method, factor = "spectral radius", "not a function of one operator, so no R(z) bounds it"
    if stability.one_operator:
        assert stability.factor is not None
        method = "R(z) exactly; sparse eigenvalues; rollouts at 0.99 and 1.01"
        factor = f"R(z) = {_describe_factor(stability.factor)}"
    if stability.waves is not None:
        method = "R(z) exactly; eigenvalues or discs around them; plane waves on a lattice; rollout at 0.99"
        where += _describe_waves(stability.waves, words)
    if stability.dt_max is None:
        reason = (
            "no amplification factor: the step of one cell between walls changes nothing, or is not a rational "
            "function of Δt"
        )
        if stability.factor is not None:
            reason = (
                "modes grow (as they do where the flow converges), so that no bound on Δt follows from the eigenvalues"
            )
            reason += "" if stability.waves is None else _describe_waves(stability.waves, words)
        return Line("stability", Verdict.UNKNOWN, reason, method)
    if stability.dt_max == 0:
        reason = "|R| > 1 for every Δt > 0" if stability.one_operator else "modes grow at the smallest steps"
        if (waves := stability.waves) is not None:
            axis = "the imaginary axis" if waves.on_axis else "a curve that leaves the stability region at 0"
            reason = f"plane waves on {waves.lattice} have eigenvalues on {axis}, where |R| > 1 for every Δt > 0"
        return Line("no step is stable", Verdict.FAILS, f"{factor}; {reason}", method)
    if not stability.bound:
        return _no_bound_line(stability, f"{factor}; {where}", method, words)
    if math.isinf(stability.dt_max):
        return Line("stable at every Δt", Verdict.HOLDS, f"{factor}{_describe_oscillation(stability, words)}", method)
    name = f"stable up to {stability.dt_max / stability.fourier:.4g} {words.step_symbol}"
    interval = "" if stability.interval is None else f", real interval [−{stability.interval:.6g}, 0]"
    runs, roughest = _describe_rollouts(stability), _describe_oscillation(stability, words)
    evidence = f"{factor}{interval}; Δt_max = {stability.dt_max:.4g}, {where}; {runs}{roughest}"
    return Line(name, _judge_limit(stability), evidence, method)


def _describe_factor(factor: sp.Expr) -> str:
    """The factor, its fractions as they are; decimals have six digits, and a note says so."""
    decimals = factor.atoms(sp.Float)
    text = str(factor.xreplace({each: sp.Float(each, 6) for each in decimals}))
    return f"{text} (decimals to six digits)" if decimals else text


def _describe_waves(waves: WaveLimit, words: Words) -> str:
    limit = "at every Δt" if math.isinf(waves.dt) else f"up to {waves.over_reference:.4g} {words.step_symbol}"
    axis = ", their eigenvalues imaginary" if waves.on_axis else ""
    return f"; plane waves on {waves.lattice}: stable {limit}{axis}"


def _no_bound_line(stability: Stability, evidence: str, method: str, words: Words) -> Line:
    """The line on a limit that is not a bound: from eigenvalues of a matrix that may not be normal, or steps tried."""
    assert stability.dt_max is not None
    unit = words.step_symbol
    if stability.spectral:
        unlimited, limited = "every Δt keeps the eigenvalues stable", "eigenvalues stable up to"
        caution = "these are complex eigenvalues of one mesh, and no bound follows if G is not normal"
    else:
        low, high, count = TRIED_STEPS
        unlimited = f"spectral radius at most 1 at every step tried, up to {high:g} {unit}"
        limited = "spectral radius at most 1 at steps tried up to"
        caution = f"{count} steps from {low:g} to {high:g} {unit} were tried on this mesh, those between were not"
    if math.isinf(stability.dt_max):
        return Line(f"no bound: {unlimited}", Verdict.MEASURED, f"{evidence}; {caution}", method)
    name = f"no bound: {limited} {stability.dt_max / stability.fourier:.4g} {unit}"
    return Line(name, _judge_limit(stability), f"{evidence}; {caution}; {_describe_rollouts(stability)}", method)


def _describe_rollouts(stability: Stability) -> str:
    text = f"rollouts: {'' if stability.stable_below else 'not '}stable at 0.99"
    if stability.diverges_above is not None:
        text += f", {'' if stability.diverges_above else 'not '}divergent at 1.01"
    return text


def _judge_limit(stability: Stability) -> Verdict:
    return Verdict.MEASURED if stability.confirmed else Verdict.FAILS


def _describe_oscillation(stability: Stability, words: Words) -> str:
    beyond = stability.oscillation_over_fourier
    return "" if beyond is None else f"; the roughest mode changes sign beyond {beyond:.3g} {words.step_symbol}"


# Wave numbers along each axis in [−π, π]/h, by dimension: EVEN equidistant ones and, for long waves, whose growth
# limits the step of central fluxes with little diffusion, LONG ones in geometric progression down to SHORTEST·π.
EVEN, LONG, SHORTEST = {2: 33, 3: 13}, {2: 8, 3: 5}, 1e-4
# Eigenvalues this near to the imaginary axis, relative to the largest, count as on it: they are sums of a few dozen
# entries of G.
ON_AXIS = 1e-12
# The accuracy of |R|² − 1, relative to |z|²; it is computed without cancellation.
ROUND_OFF = 1e-13
# The shortest and the longest step tried, times the largest |eigenvalue|; no failure up to the longest means no limit.
FIRST, LAST = 1e-6, 1e5


def wave_limit(scheme: Scheme, factor: sp.Expr, family: str, *, parameters: Settings) -> WaveLimit | None:
    """The limit on a lattice of one cell per period, for constant parameters; None if waves grow as Δt → 0."""
    values = wave_spectrum(scheme, family, parameters=parameters)
    largest = float(np.abs(values).max(initial=0.0))
    if values.real.max(initial=0.0) > ON_AXIS * largest:
        return None
    on_axis = bool(np.abs(values.real).max(initial=0.0) <= ON_AXIS * largest) and largest > 0
    imaginary = imaginary_interval(factor)
    dt = imaginary / largest if on_axis else spectral_limit(factor, values)
    return WaveLimit(family, dt, dt / reference_of_lattice(scheme, family, parameters=parameters), on_axis, imaginary)


def wave_spectrum(scheme: Scheme, family: str, *, parameters: Settings) -> np.ndarray:
    """The eigenvalues of the generator's symbol at wave numbers of the first Brillouin zone.

    Raises NumericalError for a lattice with more than one cell per period.
    """
    period = period_rows(scheme, *lattice_graph(family), parameters=parameters)
    if period.cells != 1:
        raise NumericalError(f"waves on {family} have no single eigenvalue a wave number")
    dimension = period.dimension
    share = np.concatenate([np.linspace(0.0, 1.0, EVEN[dimension]), np.geomspace(SHORTEST, 0.1, LONG[dimension])])
    # The eigenvalues at k and −k are conjugate: half of the first axis is enough.
    both = np.unique(np.concatenate([-share, share]))
    axes = [np.unique(share), *([both] * (dimension - 1))]
    k = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1) * math.pi / period.size
    # e^{ik·d} − 1 = −2 sin²(k·d/2) + i sin(k·d): the real part of long waves is not lost in a difference.
    phase = k @ period.d.T
    waves = -2.0 * np.sin(phase / 2) ** 2 + 1j * np.sin(phase)
    total = math.fsum(period.value)
    rate = total if abs(total) > ON_AXIS * float(np.abs(period.value).max(initial=0.0)) else 0.0
    return np.asarray(waves @ period.value + rate)


def reference_of_lattice(scheme: Scheme, family: str, *, parameters: Settings) -> float:
    """The reference step of a cell in the middle of the lattice, which has no wall; infinite without any rate."""
    graph, (cell,) = lattice_graph(family)
    exchange = float(exchange_weights(scheme.equation, graph, parameters)[cell].sum())
    reaction = linear_reaction(scheme.equation, graph, parameters)
    assert reaction is not None
    rate = exchange / (reaction.capacity[cell] * graph.V[cell]) + max(0.0, -reaction.slope[cell])
    return math.inf if rate == 0 else float(1.0 / rate)


def imaginary_interval(factor: sp.Expr) -> float:
    """The largest β with |R(iy)| ≤ 1 on all of [0, β]: 0 for Euler's method, 2√2 for the classical one."""
    if not factor.free_symbols:
        return math.inf if abs(factor) <= 1 else 0.0
    (z,) = factor.free_symbols
    y = symbol("y")
    numerator, denominator = (
        sp.expand(part.subs(z, sp.I * y) * part.subs(z, -sp.I * y)) for part in sp.fraction(sp.together(factor))
    )
    excess = sp.Poly(sp.expand(numerator - denominator), y)
    if excess.is_zero:
        return math.inf
    # Even in y, a polynomial of w = y² with a root at 0, which is divided out: its sign there is that of the rest.
    lowest = excess.terms()[-1][0][0]
    rest = np.array([float(excess.coeff_monomial(y**k)) for k in range(excess.degree(), lowest - 1, -2)])
    if rest[-1] > 0:
        return 0.0
    roots = np.roots(rest)
    real = np.sort(roots.real[(np.abs(roots.imag) <= 1e-9 * np.abs(roots)) & (roots.real > 0)])
    at = [0.0, *real.tolist()]
    middles = [0.5 * (a + b) for a, b in pairwise(at)] + [2 * at[-1] + 1.0]
    for start, middle in zip(at, middles, strict=True):
        if np.polyval(rest, middle) > 0:
            return math.sqrt(start)
    return math.inf


def spectral_limit(factor: sp.Expr, eigenvalues: np.ndarray) -> float:
    """The largest Δt up to which |R(Δt λ)| ≤ 1 for every eigenvalue; 0 if none is found, infinite without a limit.

    Steps are tried from short to long, ten per decade, and the first failure is located by bisection.
    """
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    if largest == 0:
        return math.inf
    excess = _excess(factor)

    def stable(dt: float) -> bool:
        z = dt * eigenvalues
        return bool((excess(z) <= ROUND_OFF * np.minimum(np.abs(z) ** 2, 1.0) + 1e-300).all())

    return last_holding(stable, np.geomspace(FIRST, LAST, 111) / largest, halvings=50)


def _excess(factor: sp.Expr) -> Callable[[np.ndarray], np.ndarray]:
    """The map z ↦ (|N|² − |D|²)/|D|² of R = N/D, computed from N − 1 and D − 1 to avoid cancellation at small z."""
    symbols = factor.free_symbols
    z = next(iter(symbols)) if symbols else symbol("z", "complex")
    parts = [sp.Poly(part, z) for part in sp.fraction(sp.together(factor))]
    scale = parts[1].eval(0)
    numerator, denominator = (
        np.array([float(c) for c in sp.Poly(part.as_expr() / scale - 1, z).all_coeffs()]) for part in parts
    )

    def excess(z: np.ndarray) -> np.ndarray:
        n, d = (np.polyval(part, z) for part in (numerator, denominator))
        difference = 2.0 * (n - d).real + (np.abs(n) ** 2 - np.abs(d) ** 2)
        return np.asarray(difference / np.abs(1.0 + d) ** 2)

    return excess
