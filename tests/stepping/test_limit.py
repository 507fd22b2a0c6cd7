"""The stability limit: steps below it are stable, steps above it diverge."""

import math
import sys
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence

from fluxforge.errors import FluxforgeError, NumericalError
from fluxforge.mesh import Conditions, DualGraph, Mesh, Neumann, dual, fourier_step, jittered, squares
from fluxforge.scheme import Claims, Hop, Scheme, SchemeBuilder, amplification, find
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import choose_step, fastest_eigenvalues, generator, real_interval, step_limit
from fluxforge.stepping._limit import enclose_rate
from real_intervals import INTERVALS, LIMITED
from strategies import BOUNDARIES, MESHES, SIDED, noise, whole_step

z = sp.Symbol("z")


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_real_interval_is_exact_and_as_claimed(name: str) -> None:
    interval = real_interval(amplification(BUILT_IN[name]))
    assert interval == pytest.approx(INTERVALS[name], rel=1e-15)
    assert BUILT_IN[name].claims.stable_to == INTERVALS[name]


@pytest.mark.parametrize("s", [2, 4, 6])
def test_an_even_number_of_legendre_stages_covers_exactly_what_it_claims(s: int) -> None:
    scheme = find(f"rkl2-{s}")
    assert real_interval(amplification(scheme)) == scheme.claims.stable_to == (s * s + s - 2) / 2


@pytest.mark.parametrize("s", [3, 5])
def test_an_odd_number_of_legendre_stages_covers_at_least_what_it_claims(s: int) -> None:
    scheme = find(f"rkl2-{s}")
    assert real_interval(amplification(scheme)) >= (s * s + s - 2) / 2 == scheme.claims.stable_to


@pytest.mark.parametrize(
    ("factor", "interval"),
    [
        (1 + z, 2.0),
        (1 - z, 0.0),
        (1 / (1 - z), math.inf),
        (1 / (1 + z), 0.0),
        ((1 + z / 2) / (1 - z / 2), math.inf),
        ((1 + 2 * z / 3) / (1 - z / 3), 6.0),
        (1 + z + z**2 / 2 + z**3 / 6, 2.512745326618329),
        ((1 + z) ** 2, 2.0),
        (1 + z / 2 + z**2 / 16, 8.0),
        (1 + 2 * z, 1.0),
        (sp.Integer(1), math.inf),
        (sp.Rational(1, 2), math.inf),
        (sp.Integer(2), 0.0),
        (1 + z**2, 0.0),
        (1 + z * (z + 1) ** 2, 2.0),
    ],
)
def test_the_real_interval_of_known_factors(factor: sp.Expr, interval: float) -> None:
    assert real_interval(factor) == pytest.approx(interval, rel=1e-14)


GRAPHS = {
    "triangles": dual(SIDED["jittered"]),
    "insulated": dual(SIDED["mixed"], Neumann()),
    "both": dual(SIDED["warped"], BOUNDARIES["both"]),
}


def noise_after(scheme: Scheme, graph: DualGraph, dt: float, steps: int) -> float:
    """How large white noise is after that many steps, without source or data."""
    M, T = whole_step(scheme, graph, dt).M, noise(graph.cells, 11)
    for _ in range(steps):
        T = M @ T
    return float(np.abs(T).max())


def spectral_radius(scheme: Scheme, graph: DualGraph, dt: float) -> float:
    return float(np.abs(np.linalg.eigvals(whole_step(scheme, graph, dt).M)).max())


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
@pytest.mark.parametrize("name", LIMITED)
def test_below_the_limit_noise_stays_bounded_and_above_it_diverges(name: str, graph: DualGraph) -> None:
    scheme = BUILT_IN[name]
    limit = step_limit(scheme, graph)
    assert limit is not None
    assert limit.interval == pytest.approx(INTERVALS[name], rel=1e-15)
    assert noise_after(scheme, graph, 0.99 * limit.dt, 2000) < 10.0
    assert noise_after(scheme, graph, 1.01 * limit.dt, 2000) > 1e6


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
def test_crank_nicolson_is_not_limited_and_its_printed_form_is_never_stable(graph: DualGraph) -> None:
    free, never = (step_limit(BUILT_IN[name], graph) for name in ("crank-nicolson", "crank-nicolson-printed"))
    assert free is not None
    assert never is not None
    assert (free.dt, never.dt) == (math.inf, 0.0)
    assert noise_after(BUILT_IN["crank-nicolson"], graph, 1e4 * fourier_step(graph), 200) < 10.0
    assert noise_after(BUILT_IN["crank-nicolson-printed"], graph, 0.01 * fourier_step(graph), 4000) > 1e6


@pytest.mark.parametrize("boundary", [*BOUNDARIES.values(), None, Neumann()], ids=[*BOUNDARIES, "zero", "insulated"])
@pytest.mark.parametrize("mesh", SIDED)
def test_the_fourier_step_is_sufficient_and_not_necessary(mesh: str, boundary: Conditions) -> None:
    graph = dual(SIDED[mesh], boundary)
    for name in ("euler", "midpoint", "rk4"):
        limit = step_limit(BUILT_IN[name], graph)
        assert limit is not None
        assert limit.dt >= fourier_step(graph) * (1 - 1e-12)


def test_the_limit_falls_with_the_diffusivity() -> None:
    one, five = (step_limit(BUILT_IN["rk4"], GRAPHS["both"], parameters={"alpha": k}) for k in (1.0, 5.0))
    assert one is not None
    assert five is not None
    assert one.dt == pytest.approx(5 * five.dt, rel=1e-10)


@pytest.mark.parametrize("name", ["euler", "corrected"])
def test_a_mesh_too_large_for_dense_eigenvalues_has_the_same_limit(name: str) -> None:
    graph = dual(jittered(13, 0.3, seed=2), BOUNDARIES["both"])
    assert graph.cells > 300
    limit = step_limit(BUILT_IN[name], graph)
    assert limit is not None
    rates = np.linalg.eigvals(generator(BUILT_IN[name], graph).M.toarray())
    assert limit.rate == pytest.approx(np.abs(rates).max(), rel=1e-4)
    assert np.abs(1 + 0.999 * limit.dt * rates).max() < 1
    rough = step_limit(BUILT_IN[name], graph, precise=False)
    assert rough is not None
    assert np.abs(1 + rough.certain * rates).max() <= 1 + 1e-12
    assert rough.certain <= limit.dt * (1 + 1e-6)
    assert rough.dt >= limit.dt * (1 - 1e-4)


@pytest.mark.parametrize("mesh", [squares(17), jittered(12, 0.1, seed=1)], ids=["squares", "jittered"])
@pytest.mark.parametrize("steps", [8, 20, 60])
def test_the_fastest_rate_lies_between_its_bounds(mesh: Mesh, steps: int) -> None:
    graph = dual(mesh, Neumann())
    G = generator(BUILT_IN["euler"], graph).M
    low, high = enclose_rate(G, graph.V, steps=steps)
    fastest = np.abs(np.linalg.eigvals(G.toarray())).max()
    assert low <= fastest * (1 + 1e-12)
    assert high >= fastest * (1 - 1e-12)
    assert high - low <= {8: 0.1, 20: 0.02, 60: 1e-4}[steps] * fastest


def test_the_fastest_eigenvalues_are_the_largest_and_in_order() -> None:
    values = -np.arange(1.0, 31.0)
    turn = np.linalg.qr(noise(900, 1).reshape(30, 30))[0]
    eigenvalues = fastest_eigenvalues(csr_array(turn @ np.diag(values) @ turn.T))
    assert eigenvalues.real == pytest.approx(values[::-1][: len(eigenvalues)], rel=1e-10)


def scheme_with_drift(speed: int) -> Scheme:
    """A central drift beside the flux, which turns eigenvalues off the real axis."""
    flux = f"alpha*A/delta*(T_N - T_P) + {speed}*A*n_x*(T_N + T_P)/2"
    return SchemeBuilder().stage({"z": flux}, {"T_new": "T + dt/V*z"}).build("drift", summary="", claims=Claims())


def test_eigenvalues_off_the_axis_shorten_the_step() -> None:
    """Euler's disk is left before the real interval ends."""
    scheme = scheme_with_drift(40)
    graph = dual(jittered(6, 0.2, seed=1))
    limit = step_limit(scheme, graph)
    assert limit is not None
    assert limit.dt < 0.99 * limit.interval / limit.rate
    assert spectral_radius(scheme, graph, 0.999 * limit.dt) <= 1
    assert spectral_radius(scheme, graph, 1.001 * limit.dt) > 1


ROUGHLY = [BUILT_IN["euler"], BUILT_IN["rkl2-8"], BUILT_IN["corrected"], scheme_with_drift(40), scheme_with_drift(400)]


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
@pytest.mark.parametrize("scheme", ROUGHLY, ids=["euler", "rkl2-8", "corrected", "drift", "strong drift"])
def test_a_step_that_is_called_certain_is(scheme: Scheme, graph: DualGraph) -> None:
    """Also where the eigenvalues are only enclosed, and where they are not real; a generator that grows is exempt."""
    limit = step_limit(scheme, graph, precise=False)
    assert limit is not None
    assert 0 <= limit.certain <= limit.dt * (1 + 1e-12)
    slowest = np.linalg.eigvals(generator(scheme, graph).M.toarray()).real.max()
    if slowest <= 1e-9:
        assert spectral_radius(scheme, graph, limit.certain) <= 1 + 1e-9


@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("name", ["euler", "rkl2-8", "corrected"])
def test_a_cell_that_exchanges_nothing_is_stable_at_any_step(name: str, precise: bool) -> None:
    limit = step_limit(BUILT_IN[name], dual(MESHES["one"], Neumann()), precise=precise)
    assert limit is not None
    assert (limit.dt, limit.rate) == (math.inf, 0.0)


def hand_made(output: str, **messages: str | tuple[Hop, str]) -> Scheme:
    flux: dict[str, str | tuple[Hop, str]] = {"z": "alpha*A/delta*(T_N - T_P)", "w": "alpha*A/delta"}
    return SchemeBuilder().stage(flux | messages, {"T_new": output}).build("mine", summary="", claims=Claims())


def test_a_scheme_that_is_one_operator_between_cold_walls_only() -> None:
    """The two-hop form without χ is the midpoint rule wherever no face is insulated, and nowhere else."""
    walk = "dt/2*(alpha*A_PN/delta_PN)*(alpha*A_NQ/delta_NQ)/V_N*(T_Q - T_N)"
    scheme = hand_made("T + dt/V*(z + far - dt/(2*V)*w*z)", far=(Hop.PATH, walk))
    graph = dual(squares(2), Neumann())
    limit = step_limit(scheme, graph)
    if limit is not None:
        assert spectral_radius(scheme, graph, 0.9 * limit.dt) <= 1 + 1e-9


def test_a_scheme_that_is_not_linear_has_no_limit() -> None:
    assert step_limit(hand_made("T + dt/V*z*T"), GRAPHS["both"]) is None


@pytest.mark.parametrize(
    "scheme",
    [
        hand_made("T + (1 - exp(-dt*w/V))/w*z"),
        hand_made("T + min(dt, V/w)/V*z"),
        hand_made("T + dt/V*z/(1 + dt*w/V)"),
        hand_made("T + dt/V*z/sqrt(1 + dt*w/V)"),
    ],
    ids=["exponential", "clipped", "rational", "root"],
)
def test_a_scheme_of_any_formula_has_a_limit_that_holds_or_none(scheme: Scheme) -> None:
    graph = GRAPHS["triangles"]
    limit = step_limit(scheme, graph)
    if limit is not None:
        dt = min(0.99 * limit.dt, 1e3 * fourier_step(graph))
        assert spectral_radius(scheme, graph, dt) <= 1 + 1e-12


@pytest.mark.parametrize(
    "scheme",
    [
        hand_made(
            "T + dt/V*(z + far)",
            far=(Hop.PATH, "-10*dt*(alpha*A_PN/delta_PN)*(alpha*A_NQ/delta_NQ)/V_N*(T_Q - T_N)"),
        ),
        hand_made("T + dt/V*(z + dt*far)", far=(Hop.RING, "-20*alpha*alpha/V_N*(T_Q - T_P)")),
        hand_made("T + sqrt(dt)/V*z"),
    ],
    ids=["paths", "ring", "root of dt"],
)
def test_a_scheme_that_is_no_function_of_its_generator_is_not_promised_a_step_it_cannot_take(scheme: Scheme) -> None:
    """R(z) of one cell says nothing about them: no limit, or one that holds."""
    graph = GRAPHS["triangles"]
    try:
        limit = step_limit(scheme, graph)
    except FluxforgeError:
        return
    if limit is not None and limit.dt > 0:
        dt = min(0.9 * limit.dt, 1e3 * fourier_step(graph))
        assert spectral_radius(scheme, graph, dt) <= 1 + 1e-9


def unconverged(*_: object, **__: object) -> None:
    """ARPACK with one value found, far below the largest."""
    raise ArpackNoConvergence("ARPACK error -1: No convergence (%d/%d eigenvectors converged)", np.array([-1.0]), None)


@pytest.mark.parametrize(("name", "solver"), [("corrected", "eigs"), ("euler", "eigsh")])
def test_eigenvalues_that_did_not_converge_bound_nothing(
    name: str, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one value that converged would allow a step thousands of times too long."""
    graph = dual(jittered(13, 0.2, seed=2))
    wanted = step_limit(BUILT_IN[name], graph)
    assert wanted is not None
    monkeypatch.setattr(sys.modules["fluxforge.stepping._limit"], solver, unconverged)
    with pytest.raises(NumericalError, match="the largest eigenvalues of the scheme on 338 cells were not found"):
        step_limit(BUILT_IN[name], graph)
    problem: dict[str, Any] = {"dt": None, "dt_fraction": 0.5, "force": False}
    _, _, limit = choose_step(BUILT_IN[name], graph, parameters={"alpha": 1.0}, **problem)
    if name == "euler":
        assert limit == pytest.approx(wanted.dt, rel=1e-2)
        assert limit <= wanted.dt * (1 + 1e-5)
    else:
        assert limit is None
