"""Standardised inputs: which are and which are not, and that an interrupted run gives the same result."""

from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge.data import AbstractSource, source
from fluxforge.gnn import Network, Standard, Standardised, build, inputs, parameters, standardise, standards
from fluxforge.graph import pad_graph
from fluxforge.mesh import dual
from fluxforge.run import RunFolder
from fluxforge.scheme import Hop
from fluxforge.train import Trained, _train, begin, chunk_function, optimiser, train
from small_networks import random_network, spec
from strategies import BOUNDARIES, MESHES, noise

TINY = recipe.Recipe(
    name="tiny",
    data=recipe.TwoCells(graphs=40, faces="random", time_step=0.1),
    network=recipe.Network(mlp="relu", depth=1, width=2, standardise=True),
    loss=recipe.Loss(residual=recipe.Residual()),
    training=recipe.Training(steps=40, batch=2, learning_rate=0.03, chunk=10, checkpoint_every=20, precision="float64"),
)


def parts(network: Network) -> list[tuple[Standardised, tuple[str, ...]]]:
    """Every MLP with the names of its inputs."""
    mlp_parts: list[Any] = [part for layer in network.layers for part in (*layer.messages, layer.update)]
    assert all(isinstance(part.f, Standardised) for part in mlp_parts)
    return [(part.f, tuple(map(str, part.features))) for part in mlp_parts]


@pytest.mark.parametrize("mlp", ["relu", "gated"])
def test_an_mlp_behind_its_standard_sees_numbers_without_mean_in_units_of_their_spread(mlp: str) -> None:
    f = random_network(spec(mlp=mlp)).layers[0].messages[0].f
    standard = Standard((1.0, -2.0, 0.0, 0.5), (2.0, 0.1, 1.0, 3.0))
    x = np.random.default_rng(0).normal(size=(7, 4))
    outputs = Standardised(f, standard)(jnp.asarray(x))
    wanted = f(jnp.asarray((x - np.array(standard.mean)) / np.array(standard.spread)))
    np.testing.assert_allclose(np.asarray(outputs), np.asarray(wanted), rtol=1e-13)
    assert float(jnp.abs(outputs - f(jnp.asarray(x))).max()) > 1e-2


def test_a_standard_is_no_weight() -> None:
    net = random_network(spec(layers=2))
    tables = [np.ones((3, 4)), np.ones((3, 5)), np.ones((3, 4)), np.ones((3, 6))]
    statistics = standards(net, [jnp.asarray(table) for table in tables])
    assert np.array_equal(parameters(standardise(net, statistics)), parameters(net))


def test_the_precision_of_the_inputs_is_kept() -> None:
    f = jax.tree.map(lambda leaf: leaf.astype("float32"), random_network(spec()).layers[0].messages[0].f)
    outputs = Standardised(f, Standard((0.1,) * 4, (0.3,) * 4))(jnp.ones((2, 4), "float32"))
    assert outputs.dtype == jnp.float32


def test_given_inputs_are_measured_and_learned_ones_left_alone() -> None:
    net: Any = random_network(spec(layers=2, hops=2, message_width=2, hidden=2))
    rng = np.random.default_rng(1)
    features = [part.features for layer in net.layers for part in (*layer.messages, layer.update)]
    tables = [rng.normal(3.0, 5.0, (400, len(own))) for own in features]
    statistics = standards(net, [jnp.asarray(table) for table in tables])
    assert len(statistics) == 6
    learned = 0
    for own, table, standard in zip(features, tables, statistics, strict=True):
        for k, feature in enumerate(own):
            if str(feature)[0] in "zh":
                learned += 1
                assert (standard.mean[k], standard.spread[k]) == (0.0, 1.0)
            else:
                assert standard.mean[k] == pytest.approx(table[:, k].mean())
                assert standard.spread[k] == pytest.approx(table[:, k].std())
    # Sums of both hops in both updates, and what the second layer reads of the first: at N, at P, and in the update.
    assert learned == 2 * 4 + 2 * 2 + 2


def test_a_feature_with_a_sum_in_it_is_learned_and_one_of_symbols_alone_is_given() -> None:
    net = random_network(spec(features="simplified", mlp="relu", update="direct"))
    rng = np.random.default_rng(2)
    message, update = standards(net, [jnp.asarray(rng.normal(3.0, 2.0, (50, width))) for width in (1, 3)])
    assert message.mean[0] > 2.0
    assert [mean > 1.0 for mean in update.mean] == [True, True, False]
    assert update.spread[2] == 1.0


def test_an_input_that_never_varies_loses_its_mean_only() -> None:
    net = random_network(spec())
    table = np.random.default_rng(3).normal(size=(20, 4))
    table[:, 2] = 1.7
    table[:, 3] = 0.0
    statistics = standards(net, [jnp.asarray(table), jnp.ones((20, 5))])[0]
    assert (statistics.mean[2], statistics.spread[2]) == (pytest.approx(1.7), 1.0)
    assert (statistics.mean[3], statistics.spread[3]) == (0.0, 1.0)


def test_the_inputs_of_a_standardised_network_have_mean_zero_and_spread_one() -> None:
    """Each MLP gets its own standard: the first layer's table is exactly what the standard undoes."""
    graph = dual(MESHES["mixed"], BOUNDARIES["both"])
    around = pad_graph(graph, (Hop.EDGE,))
    T, S = jnp.asarray(noise(graph.cells, 1)), jnp.asarray(noise(graph.cells, 2))
    net = random_network(spec(mlp="relu", layers=2))
    posed = eqx.filter_vmap(lambda dt: _Posed(around, T, S, dt, {"alpha": jnp.asarray(1.0)}))(jnp.array([0.01, 0.03]))
    tables = inputs(net, posed)
    statistics = standards(net, tables)
    for table, standard in zip(tables[:2], statistics[:2], strict=True):
        scaled = (np.asarray(table) - np.array(standard.mean)) / np.array(standard.spread)
        from_data = np.array(standard.spread) != 1.0
        np.testing.assert_allclose(scaled[:, from_data].mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(scaled[:, from_data].std(axis=0), 1.0, rtol=1e-9)
        assert from_data.sum() == 4
    standardised = standardise(net, statistics)
    assert [f.standard for f, _ in parts(standardised)] == list(statistics)
    assert standardised.hops == net.hops


class _Posed(eqx.Module):
    graph: object
    T: jax.Array
    S: jax.Array
    dt: jax.Array
    parameters: dict[str, jax.Array]


@cache
def data() -> AbstractSource:
    return source(TINY)


class Stop:
    """Interrupts once a step is reached."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, step: int, *_: object) -> None:
        if step >= self.step:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupted_run_with_standardised_inputs_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The standards are measured again, and are the same to the last bit."""
    chunk = chunk_function(TINY, optimiser(TINY.training))
    # All runs share one compilation.
    monkeypatch.setattr(_train, "chunk_function", lambda *_: chunk)
    whole = train(TINY, data())
    with (
        RunFolder.create(tmp_path / "run", description={}, warn=pytest.fail) as folder,
        pytest.raises(KeyboardInterrupt),
    ):
        train(TINY, data(), folder=folder, tell=Stop(20))
    with RunFolder.open(tmp_path / "run", warn=pytest.fail) as folder:
        again = train(TINY, data(), folder=folder)
        assert [record["step"] for record in folder.metrics.read()] == [10, 20, 30, 40]
    assert np.array_equal(weights(again), weights(whole))
    assert [f.standard for f, _ in parts(again.network)] == [f.standard for f, _ in parts(whole.network)]
    for (f, names), wanted in zip(parts(whole.network), ("T_N", "T"), strict=True):
        assert names[0] == wanted
        by_name = dict(zip(names, zip(*f.standard, strict=True), strict=True))
        # One step for all graphs; temperatures uniform in [−1, 1].
        assert by_name.get("dt", (0.1, 1.0)) == pytest.approx((0.1, 1.0))
        assert by_name.get("T", (0.0, 0.57))[1] == pytest.approx(0.57, rel=0.15)


def weights(done: Trained) -> np.ndarray:
    return np.asarray(parameters(done.network))


def test_without_the_word_nothing_is_standardised() -> None:
    plain = replace(TINY, network=replace(TINY.network, standardise=False))
    network: Any = begin(plain, optimiser(plain.training), data()).network
    assert not any(isinstance(layer.update.f, Standardised) for layer in network.layers)
    assert not any(isinstance(layer.update.f, Standardised) for layer in build(TINY.network, jax.random.key(0)).layers)
