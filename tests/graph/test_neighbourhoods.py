"""Node values under each ghost rule."""

import numpy as np
import pytest

from fluxforge.expression import symbol
from fluxforge.graph import Neighbourhoods, node_volumes, view
from fluxforge.mesh import Dirichlet, DualGraph, Neumann, dual, fourier_step, squares
from fluxforge.scheme import Claims, Ghost, Hop, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator
from strategies import BOUNDARIES, MESHES, SIDED, noise, whole_step

GRAPHS = {name: dual(MESHES["mixed"], conditions) for name, conditions in BOUNDARIES.items()}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))


@every_graph
@pytest.mark.parametrize("rule", list(Ghost))
def test_what_a_node_shows_of_a_field(graph: DualGraph, rule: Ghost) -> None:
    field = noise(graph.cells)
    shown = view(graph, rule).of(field)
    assert np.array_equal(shown[: graph.cells], field)
    for k in range(graph.ghosts):
        f = graph.interior + k
        owner = field[graph.owner[f]]
        if graph.neumann[k]:
            wanted = owner + (graph.value[k] * graph.delta[f] if rule is Ghost.DIRICHLET else 0.0)
        else:
            wanted = {Ghost.DIRICHLET: graph.value[k], Ghost.OWNER: owner, Ghost.ZERO: 0.0}[rule]
        assert shown[graph.cells + k] == pytest.approx(wanted, rel=1e-15)


@every_graph
def test_a_dirichlet_ghost_has_no_inverse_volume_and_a_neumann_ghost_its_owners(graph: DualGraph) -> None:
    V = node_volumes(graph)
    owner = graph.owner[graph.interior :]
    assert np.array_equal(V[: graph.cells], graph.V)
    assert np.array_equal(V[graph.cells :], np.where(graph.neumann, graph.V[owner], np.inf))


@every_graph
@pytest.mark.parametrize(
    "name", [name for name in BUILT_IN if name not in ("midpoint-printed", "crank-nicolson-printed")]
)
def test_boundary_data_enter_every_stage_as_a_source_would(name: str, graph: DualGraph) -> None:
    """dT/dt = G T + r + S: whatever a method makes of a constant S it must make of r, stage by stage."""
    dt = 0.7 * fourier_step(graph, 1.3)
    step = whole_step(BUILT_IN[name], graph, dt, 1.3)
    r = generator(BUILT_IN[name], graph, parameters={"alpha": 1.3}).b
    assert np.abs(r).max() > 1
    assert np.abs(step.b - step.N @ r).max() <= 1e-13 * np.abs(step.b).max()


@every_graph
def test_the_printed_midpoint_rule_treats_boundary_data_as_the_right_one_does(graph: DualGraph) -> None:
    dt = 0.7 * fourier_step(graph)
    right, printed = (whole_step(BUILT_IN[name], graph, dt) for name in ("midpoint", "midpoint-printed"))
    assert np.array_equal(right.M, printed.M)
    assert np.array_equal(right.b, printed.b)
    assert np.abs(right.N - printed.N).max() > 0.1 * dt


def shows(rule: Ghost, quantity: str, graph: DualGraph, field: np.ndarray) -> np.ndarray:
    """Σ over faces of what the neighbour shows of an earlier output."""
    builder = SchemeBuilder().stage({}, {"a": (rule, quantity)}).stage({"z": "a_N"}, {"T_new": "z"})
    return whole_step(builder.build("m", summary="", claims=Claims()), graph, 1.0)(field, field)


@pytest.mark.parametrize("rule", list(Ghost))
@pytest.mark.parametrize("quantity", ["T", "S", "2*T + V", "V"])
def test_the_rule_of_an_output_decides_what_later_messages_see(rule: Ghost, quantity: str) -> None:
    graph = dual(MESHES["mixed"], {"left": Dirichlet(3.0), "right": Neumann(2.0)})
    field = noise(graph.cells)
    a = {"T": field, "S": field, "2*T + V": 2 * field + graph.V, "V": graph.V}[quantity]
    wanted = np.zeros(graph.cells)
    for f, (P, N) in enumerate(zip(graph.owner, graph.neighbour, strict=True)):
        if f < graph.interior:
            wanted[P] += a[N]
            wanted[N] += a[P]
            continue
        k = f - graph.interior
        if graph.neumann[k]:
            wanted[P] += a[P] + (2.0 * graph.delta[f] if rule is Ghost.DIRICHLET else 0.0)
        else:
            wanted[P] += {Ghost.DIRICHLET: graph.value[k], Ghost.OWNER: a[P], Ghost.ZERO: 0.0}[rule]
    assert np.allclose(shows(rule, quantity, graph, field), wanted, rtol=1e-13, atol=1e-13)


def test_a_source_is_zero_beyond_a_dirichlet_face_and_mirrored_beyond_a_neumann_face() -> None:
    scheme = SchemeBuilder().stage({"z": "S_N"}, {"T_new": "z"}).build("m", summary="", claims=Claims())
    for mesh in SIDED.values():
        graph = dual(mesh, {"left": Neumann(5.0), "right": Dirichlet(5.0)})
        step = whole_step(scheme, graph, 1.0)
        mirrored = np.zeros(graph.cells)
        np.add.at(mirrored, graph.owner[graph.interior :], graph.neumann.astype(float))
        assert np.array_equal(np.diag(step.N), mirrored)
        assert not step.b.any()


def test_what_lies_along_the_paths_to_a_ring_cell_is_averaged() -> None:
    """On squares of side 1/4, a diagonal cell is reached by two paths and a cell straight on by one."""
    graph = dual(squares(4), Neumann())
    ring = Neighbourhoods(graph)[Hop.RING]
    paths = ring.over_paths
    assert paths is not None
    assert {1, 2} <= set(paths.multiplicity[ring.mask])
    assert np.array_equal(paths.of(np.ones(paths.slot_of_path.shape)), ring.mask.astype(float))
    for name in ("A_PN", "delta_NQ"):
        assert ring.geometry[symbol(name)][ring.mask] == pytest.approx(0.25, rel=1e-15)
