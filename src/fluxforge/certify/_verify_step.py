"""Certificates of steps that are given as functions."""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

from fluxforge._arguments import check_kind, check_positive, check_text
from fluxforge._types import State
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._evidence import Line, Verdict, unknown_line, verdict_of
from fluxforge.certify._properties import Conservation, Linearity
from fluxforge.certify._summary import summarise
from fluxforge.certify.conservation import ROLLOUT, TOLERANCE, conservation_line, drift_between, signed_states
from fluxforge.certify.cost import hops_used, linearity_defects, linearity_line
from fluxforge.errors import InputError
from fluxforge.mesh._boundary import Neumann
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import generate, jittered, squares
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import fourier_step
from fluxforge.mesh._read import as_mesh
from fluxforge.pde._equation import HEAT
from fluxforge.stepping._stepper import AbstractMethod

# make_step(graph, dt) returns one step T ↦ T', which JAX can differentiate.
MakeStep = Callable[[DualGraph, float], Callable[[State], State]]

# Round-off of a step and its Jacobian, in double precision; and the time steps that are tried, over the Fourier step.
STEP_TOLERANCE = 1e-10
FRACTIONS = (0.1, 0.25, 0.5, 0.75, 1.0)


def verify_step(make_step: MakeStep | AbstractMethod, *, name: str = "step", mesh: Mesh | None = None) -> Certificate:
    """Certify a step known only as a function; its Jacobian, by automatic differentiation, is its stencil.

    `make_step(graph, dt)` returns the step T ↦ T' on a graph; the network of a run of the heat equation is taken as
    well, in units of time in which its diffusivity is 1.

    Lines: linearity, hops, conservation under insulation, preservation of constants, growth and maximum principle at
    several fractions of the Fourier step, and the diffusivity on squares. The source is 0 and the diffusivity 1.
    Raises InputError for a network of another equation, and for arguments of the wrong kind.
    """
    if isinstance(make_step, AbstractMethod):
        return verify_step(_as_heat_step(make_step), name=name, mesh=mesh)
    check_kind(make_step, "make_step", Callable, "a function of a graph and a time step")  # type: ignore[arg-type]
    check_text(name, "name")
    mesh = generate(kind="irregular", cells=200, seed=1, engine="builtin") if mesh is None else as_mesh(mesh)
    with jax.enable_x64(True):
        linearity = _measure_linearity(make_step, dual(mesh))
        conservation = _measure_conservation(make_step, jittered(6, 0.2, 5))
        lines = (
            linearity_line(linearity, f"on {mesh.origin}"),
            conservation_line(conservation, "on an irregular mesh"),
            _constants_line(make_step, dual(mesh, Neumann())),
            *(_growth_line(make_step, dual(mesh), fraction, linear=linearity.linear) for fraction in FRACTIONS),
            _diffusivity_line(make_step, linear=linearity.linear),
        )
    certificate = Certificate(
        scheme=name, quick=False, lines=lines, linearity=linearity, conservation=conservation, mesh=mesh.origin
    )
    return replace(certificate, summary=summarise(certificate))


def _as_heat_step(method: AbstractMethod) -> MakeStep:
    """The steps of a method of the heat equation for α = 1: T after αΔt is that after Δt with α."""
    if method.equation != HEAT:
        raise InputError(
            f"make_step is a method of the equation {method.equation.name!r}: only those of the heat equation can be "
            "certified by their steps"
        )
    (alpha,) = HEAT.parameters
    setting = method.check_settings({}).get(alpha.name, alpha.default)
    diffusivity = check_positive(setting, "the diffusivity of make_step")
    return lambda graph, dt: method.stepper(graph, dt / diffusivity)


def jacobian(make_step: MakeStep, graph: DualGraph, dt: float, T: State) -> np.ndarray:
    """∂T'/∂T at the state T, a dense matrix."""
    return np.asarray(jax.jacfwd(make_step(graph, dt))(jnp.asarray(T)))


def _draw_state(graph: DualGraph) -> np.ndarray:
    return np.random.default_rng(0).random(graph.cells)


def _linearise(make_step: MakeStep, graph: DualGraph, dt: float, *, linear: bool) -> tuple[np.ndarray, str]:
    """The Jacobian of a step for its lines, at a random state if it is linear and at T = 0 if not; and that state.

    A linear step has one Jacobian, but at T = 0, where ReLUs of a network have corners, JAX may give another.
    """
    if linear:
        return jacobian(make_step, graph, dt, _draw_state(graph)), "linearised at a random T in (0, 1)"
    return jacobian(make_step, graph, dt, np.zeros(graph.cells)), "linearised at T = 0"


def _measure_linearity(make_step: MakeStep, graph: DualGraph) -> Linearity:
    dt = 0.1 * fourier_step(graph)
    step, T = make_step(graph, dt), _draw_state(graph)
    defects = linearity_defects(lambda state: np.asarray(step(jnp.asarray(state))), graph.cells)
    M = csr_array(jacobian(make_step, graph, dt, T))
    used = csr_array(abs(M) > 1e-12 * abs(M).max())
    return Linearity(max(defects) <= STEP_TOLERANCE, hops_used(graph, used), used.nnz / graph.cells, *defects)


def _measure_conservation(make_step: MakeStep, mesh: Mesh) -> Conservation:
    graph = dual(mesh, Neumann())
    dt = 0.25 * fourier_step(dual(mesh))
    T = _draw_state(graph)
    defects = np.abs(graph.V @ jacobian(make_step, graph, dt, T) - graph.V) / graph.V
    worst = int(np.argmax(defects))
    step = make_step(graph, dt)
    once = jax.jit(lambda T: step(T))
    after = jnp.asarray(T)
    for _ in range(ROLLOUT):
        after = once(after)
    runs = [(T, np.asarray(after))]
    runs += [(state, np.asarray(once(jnp.asarray(state)))) for state in signed_states(graph.cells)]
    drifts = [drift_between(graph.V, start, end) for start, end in runs if np.isfinite(end).all()]
    drift = max(drifts) if drifts else float("inf")
    holds = bool(defects[worst] <= TOLERANCE * 100) and drift <= TOLERANCE * ROLLOUT
    return Conservation(holds, float(defects[worst]), worst, drift, None, len(drifts))


def _constants_line(make_step: MakeStep, graph: DualGraph) -> Line:
    dt = 0.5 * fourier_step(graph)
    moved = max(float(np.abs(np.asarray(make_step(graph, dt)(jnp.full(graph.cells, c))) - c).max()) for c in (0.0, 1.0))
    evidence = f"T = 0 and T = 1 under insulation change by {moved:.1e} in a step"
    return Line("constants are kept", verdict_of(moved <= STEP_TOLERANCE), evidence, "one step")


def _growth_line(make_step: MakeStep, graph: DualGraph, fraction: float, *, linear: bool) -> Line:
    M, where = _linearise(make_step, graph, fraction * fourier_step(graph), linear=linear)
    if not np.isfinite(M).all():
        return unknown_line(f"at {fraction:g} Δt_Fourier", f"the Jacobian is not finite, {where}")
    radius = float(np.abs(np.linalg.eigvals(M)).max())
    least = float(min(M.min(), (1 - M.sum(axis=1)).min()))
    evidence = f"spectral radius {radius:.6f}, least weight {least:.1e}, {where}"
    name = f"at {fraction:g} Δt_Fourier: {'stable' if radius <= 1 + STEP_TOLERANCE else 'unstable'}"
    name += ", maximum principle" if least >= -STEP_TOLERANCE else ""
    return Line(name, verdict_of(radius <= 1 + STEP_TOLERANCE), evidence, "eigenvalues and signs of the Jacobian")


def _diffusivity_line(make_step: MakeStep, *, linear: bool) -> Line:
    """K on squares, for a diffusivity of 1, from the second moments of one row in the middle, per unit of time."""
    n, letter = 9, HEAT.words.diffusion
    graph = dual(squares(n))
    dt = 1e-3 * fourier_step(graph)
    M, where = _linearise(make_step, graph, dt, linear=linear)
    row = (M[n * n // 2] - np.eye(n * n)[n * n // 2]) / dt
    d = graph.x - graph.x[n * n // 2]
    K = 0.5 * np.einsum("j,je,jf->ef", row, d, d)
    # Rounded before 0 is added, which turns −0.0 into 0.0.
    xx, xy, yx, yy = np.round(K, 4).ravel() + 0.0
    evidence = f"K/{letter} = [[{xx:.4f}, {xy:.4f}], [{yx:.4f}, {yy:.4f}]], {where}"
    verdict = verdict_of(bool(np.abs(K - np.eye(2)).max() <= 0.01)) if np.isfinite(K).all() else Verdict.UNKNOWN
    return Line(f"diffusivity on squares is {letter}", verdict, evidence, "second moments of the Jacobian, Δt → 0")
