"""Networks written by hand: how many non-zeros, and where they are the first-order scheme."""

from collections.abc import Mapping
from types import MappingProxyType

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge import recipe
from fluxforge.data import CORNER_CASES, Problem, ensemble, pose, two_cells
from fluxforge.errors import InputError
from fluxforge.gnn import Network, build
from fluxforge.gnn.exact import (
    LinearWeights,
    biased_network,
    late_network,
    linear_network,
    linear_weights,
    memorising_network,
    needed_bound,
    nonzeros,
    one_sided_network,
    sparse_count,
    sparse_network,
)
from fluxforge.graph import pad_graph
from fluxforge.mesh import (
    Conditions,
    Dirichlet,
    DualGraph,
    Mesh,
    Neumann,
    dual,
    fourier_step,
    generate,
    jittered,
    right_triangles,
    squares,
)
from strategies import EXPLICIT, few, noise, seeds, whole_step


def weights(graph: DualGraph, alpha: float = 1.0) -> np.ndarray:
    """W = α A/δ in each cell's slots, 0 where the slot is unused or the face is a Neumann face."""
    w = np.where(graph.moving, alpha * graph.A / graph.delta, 0.0)
    return np.where(graph.slot_mask, w[graph.slot_face], 0.0)


SHAPES = [(1, 2, 2), (1, 3, 5), (2, 2, 32), (2, 4, 3), (3, 2, 2), (3, 3, 4)]
SIDES: Conditions = {
    "left": Dirichlet("1 + y"),
    "right": Neumann("y - 2*x"),
    "bottom": Neumann(),
    "top": Dirichlet("cos(x)"),
}
MESHES: Mapping[str, Mesh] = MappingProxyType(
    {
        "squares": squares(4),
        "right": right_triangles(3),
        "jittered": jittered(4, 0.3, seed=1),
        "irregular": generate(kind="irregular", cells=60, seed=1, engine="builtin"),
    }
)
# Quadrilaterals and irregular triangles stand for the others.
every_mesh = pytest.mark.parametrize(
    "mesh", ["squares", "irregular", *(pytest.param(name, marks=pytest.mark.slow) for name in ("right", "jittered"))]
)
PACE = 0.1 / 3.0**0.5


def answered(
    network: Network, graph: DualGraph, T: np.ndarray, S: np.ndarray, *, dt: float, alpha: float
) -> np.ndarray:
    step = eqx.filter_jit(network)
    return np.asarray(step(pad_graph(graph), jnp.asarray(T), jnp.asarray(S), dt=dt, parameters={"alpha": alpha}))


@eqx.filter_jit
def off(network: Network, problems: Problem) -> jax.Array:
    """M(T) − F(T) in every cell of every problem, 0 in padding."""

    def one(p: Problem) -> jax.Array:
        new = network(p.graph, p.T, p.S, dt=p.dt, parameters=p.parameters)
        return jnp.where(p.graph.live, new - p.answer, 0.0)

    return jax.vmap(one)(problems)


@pytest.fixture(scope="module")
def pairs() -> Problem:
    """The paper's training set without faces, negatives of the corner cases included."""
    return jax.jit(lambda key: two_cells(recipe.TwoCells(negated=True), key))(jax.random.key(0))


@pytest.fixture(scope="module")
def elsewhere() -> Problem:
    """White noise on irregular meshes of about 100 cells, at half the Fourier step."""
    meshes = ensemble([generate(kind="irregular", cells=100, seed=k, engine="builtin") for k in (1, 2)])

    def one(key: jax.Array, k: jax.Array) -> Problem:
        return pose(meshes.member(k), key, field=jnp.array(1), fourier=jnp.array(0.5))

    return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), 8), jnp.arange(8) % 2)


@pytest.mark.parametrize(("layers", "depth", "width"), SHAPES)
def test_the_lemmas_network_has_exactly_its_count_of_nonzeros_and_the_shape_of_a_trained_one(layers, depth, width):
    network = sparse_network(layers, depth, width)
    spec = recipe.Network(features="simplified", mlp="relu", update="direct", layers=layers, depth=depth, width=width)
    trained = eqx.filter_eval_shape(build, spec, jax.random.key(0))
    assert nonzeros(network) == sparse_count(layers, depth) == 2 * depth * (layers + 1) + 4
    assert jax.tree.structure(network) == jax.tree.structure(trained)
    assert [leaf.shape for leaf in jax.tree.leaves(network)] == [leaf.shape for leaf in jax.tree.leaves(trained)]


def test_the_counts_named_in_the_paper():
    assert nonzeros(sparse_network(1, 2, 32)) == 12
    assert nonzeros(sparse_network(2, 2, 32)) == 16


@every_mesh
@pytest.mark.parametrize(("layers", "depth"), [(1, 2), (2, 3)])
def test_the_lemmas_network_is_the_first_order_scheme_on_any_mesh(mesh, layers, depth):
    graph = dual(MESHES[mesh], SIDES)
    T, S = 10.0 * noise(graph.cells, 1), 3.0 * noise(graph.cells, 2)
    dt, alpha = 0.7 * fourier_step(graph), 0.3
    new = answered(sparse_network(layers, depth, 4), graph, T, S, dt=dt, alpha=alpha)
    wanted = whole_step(EXPLICIT["euler"], graph, dt, alpha)(T, S)
    assert np.abs(new - wanted).max() <= 1e-13 * np.abs(wanted).max()


@pytest.mark.parametrize(("layers", "depth", "width"), SHAPES)
def test_a_bias_carries_signed_values_with_fewer_nonzeros_than_the_claimed_minimum(layers, depth, width):
    biased = nonzeros(biased_network(layers, depth, width, 5.0))
    memorising = nonzeros(memorising_network(layers, depth, width, bound=5.0, ratio=0.1))
    assert (memorising, biased) == (depth * (layers + 1) + 4, depth * (layers + 1) + 6)
    assert biased < sparse_count(layers, depth)


def test_twelve_and_ten_nonzeros_do_what_sixteen_are_said_to_be_needed_for(pairs):
    bound = needed_bound(1.0, 0.1, weight=3.0**0.5, fourier=0.1)
    for network, count in (
        (biased_network(2, 2, 32, bound), 12),
        (memorising_network(2, 2, 32, bound=bound, ratio=PACE), 10),
    ):
        assert nonzeros(network) == count
        assert float(jnp.abs(off(network, pairs)).max()) <= 1e-12


@every_mesh
def test_the_biased_network_is_exact_on_bounded_data_however_many_neighbours_a_cell_has(mesh):
    graph = dual(
        MESHES[mesh], {"left": Dirichlet("y"), "right": Neumann(), "bottom": Neumann(), "top": Dirichlet(-1.0)}
    )
    T, S = np.sign(noise(graph.cells, 1)), noise(graph.cells, 2)
    dt, alpha = fourier_step(graph, 0.3), 0.3
    largest = weights(graph, alpha).max()
    bound = needed_bound(1.0, dt * float(np.abs(S).max()), weight=float(largest))
    wanted = whole_step(EXPLICIT["euler"], graph, dt, alpha)(T, S)
    new = answered(biased_network(2, 2, 3, bound), graph, T, S, dt=dt, alpha=alpha)
    assert np.abs(new - wanted).max() <= 1e-12
    too_small = answered(biased_network(2, 2, 3, 0.2 * float(largest)), graph, T, S, dt=dt, alpha=alpha)
    assert np.abs(too_small - wanted).max() > 0.01


@given(seed=seeds, fourier=st.floats(0.05, 2.0))
@few(30)
def test_no_flux_and_no_new_temperature_exceeds_the_needed_bound(seed, fourier):
    graph = dual(MESHES["jittered"], Dirichlet(1.0))
    rng = np.random.default_rng(seed)
    T, S = np.sign(rng.standard_normal(graph.cells)), rng.uniform(-1, 1, graph.cells)
    dt = fourier * fourier_step(graph)
    w = weights(graph)
    bound = needed_bound(1.0, dt, weight=float(w.max()), fourier=fourier)
    shown = np.concatenate([T, np.ones(graph.ghosts)])[graph.slot_node]
    flux = w * (shown - T[:, None])
    new = T + dt * (flux.sum(axis=1) / graph.V + S)
    assert max(np.abs(flux).max(), np.abs(new).max()) <= bound * (1 + 1e-12)
    assert np.abs(new).max() <= needed_bound(1.0, dt, weight=0.0, fourier=fourier) * (1 + 1e-12)


def test_the_memorising_network_errs_elsewhere_by_its_lift_times_what_differs(elsewhere):
    bound, lift = 3.5, 3.5 / PACE
    errors = off(memorising_network(2, 2, 32, bound=bound, ratio=PACE), elsewhere)
    neighbours = elsewhere.graph.hops["edge"].mask.sum(axis=2)
    wanted = jnp.where(
        elsewhere.graph.live, lift * (neighbours * elsewhere.dt[:, None] / elsewhere.graph.V - PACE), 0.0
    )
    exact = wanted >= -bound + 1.1
    assert float(jnp.abs(jnp.where(exact, errors - wanted, 0.0)).max()) <= 1e-12
    assert float(jnp.abs(errors).max()) > 1.0


def test_idle_parameters_count_and_do_nothing(pairs, elsewhere):
    plain = memorising_network(2, 2, 2, bound=2.0, ratio=PACE)
    padded = memorising_network(2, 2, 2, bound=2.0, ratio=PACE, nonzeros=16)
    assert (nonzeros(plain), nonzeros(padded)) == (10, 16)
    for problems in (pairs, elsewhere):
        np.testing.assert_array_equal(off(plain, problems), off(padded, problems))


def test_a_tolerance_hides_small_parameters():
    network = linear_network(LinearWeights(bias=1e-6))
    assert (nonzeros(network), nonzeros(network, 1e-5), nonzeros(network, 2.0)) == (5, 4, 0)


def test_the_one_sided_network_is_the_scheme_where_the_update_is_positive(pairs):
    errors = off(one_sided_network(2, 2, 4, -0.5), pairs)
    assert nonzeros(one_sided_network(2, 2, 4, -0.5)) == sparse_count(2, 2)
    wanted = jnp.where(pairs.answer < 0, -1.5 * pairs.answer, 0.0)
    np.testing.assert_allclose(errors, wanted, atol=1e-14)
    assert float(jnp.abs(errors).max()) > 1.0


def test_the_late_network_is_the_scheme_in_the_corner_cases_and_their_negatives_only(pairs):
    network = late_network(2, 3, 4, 0.5)
    assert nonzeros(network) == sparse_count(2, 3)
    errors, T, F = off(network, pairs), pairs.T, pairs.answer
    up, down = jnp.where(T < 0, F - 0.5 * T, F), jnp.where(T < 0, F, F + T)
    np.testing.assert_allclose(errors + F, jax.nn.relu(up) - jax.nn.relu(-down), atol=1e-14)
    cases = 2 * len(CORNER_CASES) - 1
    assert float(jnp.abs(errors[-cases:]).max()) <= 1e-14
    assert float(jnp.abs(errors).max()) > 0.01


def test_the_linear_network_computes_its_formula_and_gives_its_weights_back(pairs):
    weights = LinearWeights(0.9, 1.2, -2.0, 0.4, 0.3, -0.1)
    network = linear_network(weights)
    assert linear_weights(network) == pytest.approx(weights)
    flux = 3.0**0.5 * (pairs.T[:, ::-1] - pairs.T)
    wanted = 0.9 * pairs.T + 1.2 * 0.1 * pairs.S - 2.0 * PACE * (0.4 * flux + 0.3) - 0.1
    np.testing.assert_allclose(off(network, pairs) + pairs.answer, wanted, atol=1e-14)
    assert linear_weights(sparse_network(1, 2, 2)) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sparse_network(1, 1, 2), "depth is 1"),
        (lambda: sparse_network(1, 2, 1), "width is 1"),
        (lambda: sparse_network(0, 2, 2), "layers is 0"),
        (lambda: late_network(1, 2, 2, 0.5), "layers is 1"),
        (lambda: biased_network(1, 2, 2, 0.0), "bound is 0"),
        (lambda: memorising_network(1, 2, 2, bound=1.0, ratio=-1.0), "ratio is -1"),
        (lambda: biased_network(1, 2, 2, 1.0, nonzeros=99), "nonzeros is 99: this network can have 10 to 16"),
        (lambda: biased_network(1, 2, 2, 1.0, nonzeros=3), "nonzeros is 3"),
    ],
)
def test_arguments_of_exact_networks_out_of_range_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
