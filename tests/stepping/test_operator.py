"""The matrices of a step against plain loops, and against what each scheme is said to be."""

from typing import Any

import numpy as np
import plain_loops
import pytest

from fluxforge.errors import SchemeError
from fluxforge.mesh import Conditions, Dirichlet, DualGraph, Mesh, Neumann, dual, fourier_step, jittered, ring
from fluxforge.scheme import Claims, Hop, Scheme, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import apply, assemble, generator, operator
from strategies import BOUNDARIES, EXPLICIT, MESHES, SIDED, noise, warped_quads, whole_step

CONSTANT_WALLS: dict[str, Conditions] = {
    "dirichlet": {"left": Dirichlet(1.5), "right": Dirichlet(-0.25), "top": Dirichlet(3.0)},
    "neumann": {"left": Neumann(0.5), "right": Neumann(-1.5), "bottom": Neumann(0.0), "top": Neumann(2.0)},
    "both": {"left": Dirichlet(1.5), "right": Neumann(-1.5), "top": Neumann()},
}


def walls(conditions: Conditions) -> dict[str, tuple[bool, Any]]:
    assert isinstance(conditions, dict)
    return {
        tag: (True, c.normal_gradient) if isinstance(c, Neumann) else (False, c.value) for tag, c in conditions.items()
    }


def gap(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference, relative to the larger of 1 and the values."""
    return float(np.abs(one - other).max() / max(1.0, np.abs(other).max()))


@pytest.mark.parametrize("conditions", CONSTANT_WALLS.values(), ids=list(CONSTANT_WALLS))
@pytest.mark.parametrize("mesh", SIDED.values(), ids=list(SIDED))
@pytest.mark.parametrize("name", ["euler", "midpoint"])
def test_the_step_is_that_of_plain_loops(name: str, mesh: Mesh, conditions: Conditions) -> None:
    graph = dual(mesh, conditions)
    T, S = noise(graph.cells, 1), noise(graph.cells, 2)
    dt = 0.8 * fourier_step(graph, 2.5)
    slow = {"euler": plain_loops.euler, "midpoint": plain_loops.midpoint}[name]
    wanted = np.array(slow(plain_loops.plain(mesh, walls(conditions)), T.tolist(), S.tolist(), dt=dt, alpha=2.5))
    assert gap(whole_step(BUILT_IN[name], graph, dt, 2.5)(T, S), wanted) <= 1e-13


@pytest.mark.parametrize("conditions", CONSTANT_WALLS.values(), ids=list(CONSTANT_WALLS))
@pytest.mark.parametrize("name", [name for name in EXPLICIT if not name.endswith("printed")])
def test_the_generator_is_the_same_semi_discrete_system(name: str, conditions: Conditions) -> None:
    """dT/dt = L T + S + r, column by column from the loops; `corrected` has an operator of its own."""
    mesh = SIDED["mixed"]
    graph = dual(mesh, conditions)
    system = generator(BUILT_IN[name], graph, parameters={"alpha": 1.7})
    assert gap(system.N.toarray(), np.eye(graph.cells)) <= 1e-13
    if name == "corrected":
        return
    slow = plain_loops.plain(mesh, walls(conditions))
    still = np.array(plain_loops.heat_flow(slow, [0.0] * graph.cells, 1.7)) / graph.V
    columns = [
        np.array(plain_loops.heat_flow(slow, unit, 1.7)) / graph.V - still for unit in np.eye(graph.cells).tolist()
    ]
    assert gap(system.M.toarray(), np.array(columns).T) <= 1e-13
    assert gap(system.b, still) <= 1e-13


def test_the_printed_schemes_have_the_generators_we_say() -> None:
    graph = dual(MESHES["mixed"], BOUNDARIES["both"])
    L = generator(BUILT_IN["euler"], graph)
    anti = generator(BUILT_IN["crank-nicolson-printed"], graph)
    assert gap(anti.M.toarray(), -L.M.toarray()) <= 1e-13
    assert gap(anti.b, -L.b) <= 1e-13
    assert abs(anti.N).max() == 0
    late = generator(BUILT_IN["midpoint-printed"], graph)
    assert gap(late.M.toarray(), L.M.toarray()) <= 1e-13
    assert gap(late.N.toarray(), np.eye(graph.cells)) <= 1e-13
    other = generator(BUILT_IN["two-hop-printed"], graph)
    assert gap(other.M.toarray(), L.M.toarray()) > 0.05


@pytest.mark.parametrize("scheme", BUILT_IN.values(), ids=str)
def test_the_generator_is_the_slope_of_the_step_at_zero(scheme: Scheme) -> None:
    """By central differences of the explicit map F, the third derivative's share removed by one extrapolation."""
    graph = dual(MESHES["mixed"], BOUNDARIES["both"])
    system = generator(scheme, graph)
    h = 1e-2 * fourier_step(graph)
    parts = {dt: operator(scheme, graph, dt=dt) for dt in (h, -h, 2 * h, -2 * h)}

    def slope(part: str) -> np.ndarray:
        near, far = (getattr(parts[dt], part) - getattr(parts[-dt], part) for dt in (h, 2 * h))
        value = (8 * near - far) / (12 * h)
        return np.asarray(value) if part == "b" else value.toarray()

    for part in ("M", "N", "b"):
        exact = getattr(system, part)
        assert gap(exact if part == "b" else exact.toarray(), slope(part)) <= 1e-7


@pytest.mark.parametrize("boundary", [*BOUNDARIES.values(), None, Neumann()], ids=[*BOUNDARIES, "zero", "insulated"])
@pytest.mark.parametrize("mesh", [*SIDED.values()], ids=list(SIDED))
def test_two_hop_is_midpoint_to_round_off(mesh: Mesh, boundary: Conditions) -> None:
    graph = dual(mesh, boundary)
    dt = 0.9 * fourier_step(graph, 0.3)
    one, two = (whole_step(BUILT_IN[name], graph, dt, 0.3) for name in ("midpoint", "two-hop"))
    assert gap(two.M, one.M) <= 1e-14
    assert gap(two.N, one.N) <= 1e-14
    assert gap(two.b, one.b) <= 1e-13


@pytest.mark.parametrize("name", ["two", "fan", "arrow", "islands", "one"])
def test_two_hop_is_midpoint_on_odd_graphs(name: str) -> None:
    graph = dual(MESHES[name], Dirichlet(2.0))
    dt = 0.9 * fourier_step(graph)
    T, S = noise(graph.cells, 3), noise(graph.cells, 4)
    one, two = (whole_step(BUILT_IN[name], graph, dt) for name in ("midpoint", "two-hop"))
    assert gap(two(T, S), one(T, S)) <= 1e-14


WALK = "dt/2*(alpha*A_PN/delta_PN)*(alpha*A_NQ/delta_NQ)/V_N"


def two_hop(second: tuple[Hop, str], *, returning: str = "0", degree: str = "chi*alpha*A/delta") -> Scheme:
    """The one-stage midpoint rule with its second hop, its way back and its Σw as given."""
    messages = {"z1": "alpha*A/delta*(T_N - T_P)", "d": degree, "z_source": "alpha*A/delta*(S_N - S_P)"}
    update = "T + dt*S + dt/V*(z1 + z2 + back + dt/2*z_source - dt/(2*V)*d*z1)"
    stage = SchemeBuilder().stage({**messages, "z2": second, "back": returning}, {"T_new": update})
    return stage.build("variant", summary="", claims=Claims())


def rms_gap(scheme: Scheme, graph: DualGraph) -> float:
    """How far one step of the scheme is from the midpoint rule on white noise, relative to it."""
    dt = 0.5 * fourier_step(graph)
    T = noise(graph.cells, 5)
    exact, after = (whole_step(s, graph, dt)(T) for s in (BUILT_IN["midpoint"], scheme))
    return float(np.linalg.norm(after - exact) / np.linalg.norm(exact))


BACK = "dt/2*(alpha*A/delta)**2/V_N*(T_P - T_N)"


def test_the_variants_of_the_two_hop_scheme_are_no_midpoint_rules() -> None:
    """Averaging a pair's paths, leaving the way back out or insulated faces in: each looks right and is not."""
    graph = dual(warped_quads(8, 0.3, seed=3), Neumann())
    walk = (Hop.PATH, f"{WALK}*(T_Q - T_N)")
    assert rms_gap(two_hop(walk), graph) <= 1e-14
    averaged = rms_gap(two_hop((Hop.RING, f"{WALK}*(T_Q - T_N)"), returning=BACK), graph)
    one_way = rms_gap(two_hop(walk, returning=f"-{BACK}"), graph)
    unmasked = rms_gap(two_hop(walk, degree="alpha*A/delta"), graph)
    assert 5e-3 < averaged < 0.5
    assert 1e-2 < one_way < 0.5
    assert 1e-3 < unmasked < 0.5


def test_with_one_path_a_pair_the_average_is_the_sum() -> None:
    """Among triangles six to a point no two cells are two hops apart by two ways: the ring and the way back do it."""
    graph = dual(jittered(8, 0.3, seed=3), Neumann())
    inner = two_hop((Hop.RING, f"{WALK}*(T_Q - T_N)"), returning=BACK)
    assert ring(graph).multiplicity.max() == 1
    assert rms_gap(inner, graph) <= 1e-14


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_a_ring_averages_over_its_paths() -> None:
    """Σ_Q mean over the paths of (A_PN δ_NQ) T_N, in plain Python."""
    graph = dual(MESHES["mixed"])
    message = (Hop.RING, "A_PN*delta_NQ*T_N + delta_PQ*T_Q*d_PQ_x - d_PQ_y*T_P*V_N")
    scheme = SchemeBuilder().stage({"z": message}, {"T_new": "z"}).build("m", summary="", claims=Claims())
    T = noise(graph.cells, 6)
    near: list[dict[int, tuple[float, float]]] = [{} for _ in range(graph.cells)]
    for f in range(graph.interior):
        for P, N in ((graph.owner[f], graph.neighbour[f]), (graph.neighbour[f], graph.owner[f])):
            near[P][int(N)] = (graph.A[f], graph.delta[f])
    wanted, most = np.zeros(graph.cells), 0
    for P in range(graph.cells):
        ways: dict[int, list[int]] = {}
        for N in near[P]:
            for Q in near[N]:
                if Q != P and Q not in near[P]:
                    ways.setdefault(Q, []).append(N)
        for Q, through in ways.items():
            A, delta = mean([near[P][N][0] for N in through]), mean([near[N][Q][1] for N in through])
            most = max(most, len(through))
            apart = graph.x[Q] - graph.x[P]
            wanted[P] += A * delta * mean([T[N] for N in through]) + np.hypot(*apart) * T[Q] * apart[0]
            wanted[P] -= apart[1] * T[P] * mean([graph.V[N] for N in through])
    assert most == 2
    assert gap(whole_step(scheme, graph, 1.0)(T), wanted) <= 1e-13


@pytest.mark.parametrize("name", EXPLICIT)
def test_applying_the_stages_is_applying_the_matrices(name: str) -> None:
    graph = dual(MESHES["mixed"], BOUNDARIES["both"])
    dt = 0.5 * fourier_step(graph)
    T, S = noise(graph.cells, 7), noise(graph.cells, 8)
    stages = assemble(BUILT_IN[name], graph, dt=dt, parameters={"alpha": 1.0})
    assert gap(apply(stages, T, S), whole_step(BUILT_IN[name], graph, dt)(T, S)) <= 1e-13


def test_a_scheme_that_is_not_linear_has_no_matrix() -> None:
    builder = SchemeBuilder().stage({"z": "T_N*T_P"}, {"T_new": "T + dt*z"})
    with pytest.raises(SchemeError, match="'square' is not linear in T and S, so it has no matrix"):
        operator(builder.build("square", summary="", claims=Claims()), dual(MESHES["mixed"]), dt=0.1)


def test_an_affine_scheme_keeps_its_constant() -> None:
    builder = SchemeBuilder().stage({"m": "A", "z": "T_N + n_x*A + 2"}, {"T_new": "T + dt*z + m + 3*V"})
    graph = dual(MESHES["mixed"], Dirichlet(5.0))
    step = operator(builder.build("affine", summary="", claims=Claims()), graph, dt=0.5)
    around, ghosts, count = np.zeros(graph.cells), np.zeros(graph.cells), np.zeros(graph.cells)
    for f, P in enumerate(graph.owner):
        around[P] += graph.A[f]
        count[P] += 1
        if f >= graph.interior:
            ghosts[P] += 5.0
        else:
            around[graph.neighbour[f]] += graph.A[f]
            count[graph.neighbour[f]] += 1
    # Σ n_x A closes to zero around every cell.
    assert gap(step.b, 0.5 * (ghosts + 2 * count) + around + 3 * graph.V) <= 1e-13
    assert abs(step.N).max() == 0


def test_a_scheme_of_geometry_alone_has_no_matrix_entries() -> None:
    scheme = SchemeBuilder().stage({"m": "A"}, {"T_new": "m/V"}).build("m", summary="", claims=Claims())
    graph = dual(MESHES["jittered"])
    step = operator(scheme, graph, dt=1.0)
    assert abs(step.M).max() == 0
    assert (step.b > 0).all()


def test_a_fixed_output_is_seen_through_its_ghost_rule() -> None:
    """An earlier output that is geometry: Dirichlet ghosts show g of it, as of any temperature."""
    builder = SchemeBuilder().stage({"m": "A"}, {"a": "m/V"}).stage({"z": "a_N - a_P"}, {"T_new": "z"})
    graph = dual(MESHES["mixed"], Dirichlet(7.0))
    constant = operator(builder.build("m", summary="", claims=Claims()), graph, dt=1.0).b
    around = np.zeros(graph.cells)
    for f, P in enumerate(graph.owner):
        around[P] += graph.A[f]
        if f < graph.interior:
            around[graph.neighbour[f]] += graph.A[f]
    a = around / graph.V
    wanted = np.zeros(graph.cells)
    for f, (P, N) in enumerate(zip(graph.owner, graph.neighbour, strict=True)):
        wanted[P] += (a[N] if f < graph.interior else 7.0) - a[P]
        if f < graph.interior:
            wanted[N] += a[P] - a[N]
    assert gap(constant, wanted) <= 1e-13


def test_the_theta_of_an_operator_is_that_of_its_scheme() -> None:
    graph = dual(MESHES["fan"])
    assert operator(BUILT_IN["crank-nicolson"], graph, dt=0.1).theta == 0.5
    assert generator(BUILT_IN["crank-nicolson"], graph).theta == 0.5
    assert operator(BUILT_IN["euler"], graph, dt=0.1).theta == 0.0
