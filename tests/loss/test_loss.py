"""A recipe's loss: named terms, their weights and norms, over live cells alone."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge import recipe
from fluxforge.data import Problem, problem
from fluxforge.gnn import Network, parameters
from fluxforge.graph import PaddedGraph, pad_graph, stack_graphs
from fluxforge.loss import Terms, absolute_sum, data_loss, defects, mean_defect, step_of, theta_residual
from fluxforge.mesh import DualGraph, dual
from small_networks import random_network, spec
from strategies import BOUNDARIES, MESHES, noise

GRAPHS = [dual(MESHES["mixed"], BOUNDARIES["both"]), dual(MESHES["two"])]
LOSS = recipe.Loss(
    supervised=recipe.Supervised(weight=0.5, norm="l2"),
    residual=recipe.Residual(weight=3.0, theta=0.25, norm="l1"),
    sparsity=recipe.Sparsity(weight=7.0),
)


@cache
def network() -> Network:
    # Numbers even if it is first asked for while something is traced: tracers would stay in the cache.
    with jax.ensure_compile_time_eval():
        return random_network(spec(mlp="relu", depth=2))


def posed(around: PaddedGraph, graph: DualGraph, k: int) -> Problem:
    """A problem on a graph, perhaps padded, with garbage in the padding."""
    cells = len(around.V)
    T, S = (np.append(noise(graph.cells, seed + k), np.full(cells - graph.cells, 1e6)) for seed in (10, 20))
    dt, alpha = jnp.asarray(0.02 * (k + 1)), jnp.asarray(1.0 + k)
    return problem(around, jnp.asarray(T), jnp.asarray(S), dt=dt, parameters={"alpha": alpha})


@cache
def alone() -> list[Problem]:
    return [posed(pad_graph(graph), graph, k) for k, graph in enumerate(GRAPHS)]


@cache
def batch() -> Problem:
    """Both problems, the second one padded to the size of the first."""
    around = stack_graphs([pad_graph(graph) for graph in GRAPHS])
    parts = [jax.tree.map(lambda leaf, k=k: leaf[k], around) for k in range(2)]
    padded = [posed(part, graph, k) for k, (part, graph) in enumerate(zip(parts, GRAPHS, strict=True))]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *padded)


@eqx.filter_jit
def stepped(problem: Problem) -> jax.Array:
    return jnp.asarray(step_of(network())(problem))


def by_hand(loss: recipe.Loss) -> dict[str, float]:
    """The terms as the recipe words them, one problem after the other."""
    terms: dict[str, list[float]] = {}
    for each in alone():
        new = stepped(each)
        if loss.supervised:
            off = np.asarray(new - each.answer) / (each.dt if loss.supervised.per_step else 1.0)
            size = np.abs(off) if loss.supervised.norm == "l1" else off**2
            terms.setdefault("supervised", []).append(loss.supervised.weight * float(size.mean()))
        if loss.residual:
            off = np.asarray(theta_residual(loss.residual.theta)(each, new))
            size = np.abs(off) if loss.residual.norm == "l1" else off**2
            terms.setdefault("residual", []).append(loss.residual.weight * float(size.mean()))
    return {name: float(np.mean(values)) for name, values in terms.items()}


@pytest.mark.parametrize(
    "loss",
    [
        LOSS,
        recipe.Loss(supervised=recipe.Supervised(weight=2.0, norm="l1", per_step=True)),
    ],
)
def test_terms_are_weighted_means_over_live_cells_then_over_the_batch(loss: recipe.Loss) -> None:
    terms: Terms = eqx.filter_jit(data_loss(loss))(network(), batch())
    assert {name: float(value) for name, value in terms.items()} == pytest.approx(by_hand(loss), rel=1e-12)


def test_slopes_do_not_see_padding_either() -> None:
    problems, singles = batch(), alone()
    whole = eqx.filter_jit(eqx.filter_grad(lambda net: sum(data_loss(LOSS)(net, problems).values())))(network())

    def apart(net: Network) -> jax.Array:
        each = [data_loss(LOSS)(net, jax.tree.map(lambda leaf: leaf[None], one)) for one in singles]
        return sum(sum(terms.values()) for terms in each) / 2  # type: ignore[return-value]

    wanted = eqx.filter_jit(eqx.filter_grad(apart))(network())
    assert np.asarray(parameters(whole)) == pytest.approx(np.asarray(parameters(wanted)), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_an_average_counts_live_cells_only(norm: str) -> None:
    second = jax.tree.map(lambda leaf: leaf[1], batch())
    off = jnp.asarray(noise(24))
    live = np.asarray(off)[:2]
    wanted = np.abs(live).mean() if norm == "l1" else (live**2).mean()
    assert float(mean_defect(off.at[2:].set(1e30), second, norm)) == pytest.approx(wanted, rel=1e-14)


def test_defects_are_those_of_the_terms_and_nothing_in_padding() -> None:
    """What a least-squares polish drives to zero must not contain cells that are not there."""
    model = network()
    rows = np.asarray(eqx.filter_jit(jax.vmap(lambda p: defects(LOSS)(model, p)))(batch()))
    assert rows.shape == (2, 2, 24)
    assert np.all(rows[1, :, 2:] == 0.0)
    squares = recipe.Loss(
        supervised=recipe.Supervised(weight=0.5, norm="l2"), residual=recipe.Residual(weight=3.0, theta=0.25, norm="l2")
    )
    assert (rows**2).sum(axis=2).mean(axis=0) == pytest.approx(list(by_hand(squares).values()), rel=1e-12)
    new = stepped(alone()[0])
    assert rows[0, 1] == pytest.approx(np.asarray(theta_residual(0.25)(alone()[0], new)) * np.sqrt(3 / 24), rel=1e-10)


def test_the_absolute_sum_is_over_every_weight_and_bias() -> None:
    wanted = sum(np.abs(np.asarray(leaf)).sum() for leaf in jax.tree.leaves(network()))
    assert float(absolute_sum(network())) == pytest.approx(wanted, rel=1e-14)
