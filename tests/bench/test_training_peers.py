"""`fluxforge.bench.bench_train`: what is compared is the same training."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge import bench, recipe
from fluxforge.bench import _train
from fluxforge.bench._pyg import pyg_graphs, pyg_loss, pyg_network, pyg_thread_counts, pyg_training, with_threads
from fluxforge.bench._train import OurTraining, our_training, toy_training
from fluxforge.data import FixedSource, Problem, source
from fluxforge.errors import InputError
from fluxforge.gnn import Network, parameters
from fluxforge.loss import absolute_sum, data_loss

ETA = 0.37
OURS = {"ours": 20_000.0, "seeds": 6_000.0}

# PyTorch warns of itself when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def pyg() -> Any:
    pytest.importorskip("torch_geometric", reason="pip install 'fluxforge[bench]'")
    return pytest.importorskip("torch")


def _fixed(spec: recipe.Recipe) -> FixedSource:
    made = source(spec)
    assert isinstance(made, FixedSource)
    return made


def in_doubles(**fields: Any) -> recipe.Recipe:
    return recipe.override(toy_training(1), {"training.precision": "float64"} | fields)


@pytest.fixture(scope="module")
def ours() -> OurTraining:
    spec = toy_training(1)
    return our_training(spec, source(spec))


def loss_and_gradient(network: Network, batch: Problem, spec: recipe.Recipe) -> tuple[float, np.ndarray]:
    """Ours, of the network as it is."""

    def total(own: Network) -> jax.Array:
        return data_loss(spec.loss)(own, batch)["supervised"] + ETA * absolute_sum(own)

    value, gradient = eqx.filter_value_and_grad(total)(network)
    return float(value), np.asarray(parameters(gradient))


def in_one_row(tensors: list[Any]) -> np.ndarray:
    return np.concatenate([tensor.detach().cpu().numpy().ravel() for tensor in tensors])


def test_our_loop_trains_the_papers_network_on_from_where_it_was(ours: OurTraining) -> None:
    spec = recipe.override(ours.spec, {"training.chunk": 3})
    at_once, twice = (OurTraining(spec, ours.source, ours.state, ours.chunk) for _ in range(2))
    at_once.run(8)
    twice.run(5)
    twice.run(3)
    assert int(at_once.state.step) == int(twice.state.step) == 8
    assert jnp.array_equal(parameters(at_once.first), parameters(twice.first))
    assert not jnp.array_equal(parameters(at_once.first), parameters(ours.first))


def test_the_training_is_the_papers(ours: OurTraining) -> None:
    spec = ours.spec
    assert len(parameters(ours.first)) == 516
    assert (spec.network.layers, spec.network.width, spec.network.depth, spec.network.mlp) == (2, 32, 2, "relu")
    assert (spec.training.optimizer, spec.training.learning_rate, spec.training.schedule) == ("adam", 1e-4, "constant")
    assert isinstance(ours.source, FixedSource)
    assert len(ours.source.problems.dt) == 105


def test_the_same_weights_give_the_same_loss_and_gradient(pyg: Any) -> None:
    from torch_geometric.loader import DataLoader

    spec = in_doubles()
    ours = our_training(spec, source(spec))
    problems = jax.tree.map(lambda leaf: leaf[-7:], _fixed(spec).problems)
    expected, gradient = loss_and_gradient(ours.first, problems, spec)
    model = pyg_network(ours.first)
    weights = list(model.parameters())
    (batch,) = DataLoader(pyg_graphs(problems), batch_size=7)
    loss = pyg_loss(model, batch, weights=weights, eta=ETA)
    loss.backward()
    assert sum(weight.numel() for weight in weights) == 516
    assert loss.item() == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(in_one_row([weight.grad for weight in weights]), gradient, rtol=1e-11, atol=1e-13)


@pytest.mark.slow
def test_the_same_batches_give_the_same_training(pyg: Any) -> None:
    # With one problem over and over, it does not matter who draws the batch.
    spec = in_doubles(**{"loss.sparsity.weight": 1e-2, "training.learning_rate": 1e-2})
    alike = jax.tree.map(lambda leaf: jnp.repeat(leaf[:1], 8, axis=0), _fixed(spec).problems)
    ours = our_training(spec, FixedSource(alike))
    before = np.asarray(parameters(ours.first))
    peers = [pyg_training(spec, ours.first, alike, prepared=prepared) for prepared in (False, True)]
    ours.run(15)
    expected = np.asarray(parameters(ours.first))
    assert np.abs(expected - before).max() > 0.05
    for peer in peers:
        peer.run(4)
        peer.run(11)
        np.testing.assert_allclose(in_one_row(peer.weights), expected, rtol=1e-9, atol=1e-11)


def test_threads_are_as_before_once_a_loop_has_run(pyg: Any) -> None:
    before, seen = pyg.get_num_threads(), []
    with_threads(lambda steps: seen.append((steps, pyg.get_num_threads())), before + 1)(5)
    assert seen == [(5, before + 1)]
    assert pyg.get_num_threads() == before
    assert {1, 2, before} == set(pyg_thread_counts())


def test_rates_are_steps_over_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, int]] = []
    tasks = {name: partial(lambda name, steps: ran.append((name, steps)), name) for name in ("ours", "seeds", "pyg/1")}

    def clock(repeated: dict[str, Callable[[int], object]], *, rounds: int) -> dict[str, float]:
        for task in repeated.values():
            task(2)
        return {"ours": 0.02, "seeds": 0.01, "pyg/1": 0.05}

    monkeypatch.setattr(_train, "best_seconds", clock)
    rates = _train.measure_rates(tasks, {"ours": 600, "seeds": 60}, others=1)
    assert ran == [("ours", 600), ("seeds", 60), ("pyg/1", 2)]
    assert rates == pytest.approx({"ours": 300 / 0.02, "seeds": 30 / 0.01, "pyg/1": 1 / 0.05})


def test_the_peers_rates_are_their_best(ours: OurTraining, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_train, "pyg_device_name", lambda: "a device")
    rates = {"pyg/1": 300.0, "pyg/2": 400.0, "pyg_prepared/1": 800.0, "pyg_prepared/2": 700.0}
    measured = _train.record_rates(ours, OURS | rates, seeds=3, steps=600)
    assert (measured.pyg_steps_per_s, measured.pyg_threads, measured.ratio) == (400.0, 2, 50.0)
    assert (measured.pyg_prepared_steps_per_s, measured.pyg_prepared_threads) == (800.0, 1)
    assert measured.ratio_prepared == 25.0
    assert measured.pyg_device == "a device"


def test_without_pytorch_geometric_its_numbers_are_null(ours: OurTraining) -> None:
    measured = _train.record_rates(ours, OURS, seeds=3, steps=600)
    assert all(value is None for key, value in vars(measured).items() if key.startswith(("pyg", "ratio")))
    assert measured.seeds_steps_per_s == 3 * 6_000.0
    assert measured.seeds_per_s == 3 * 6_000.0 / 90_000
    assert (measured.parameters, measured.batch, measured.seeds, measured.steps) == (516, 4, 3, 600)
    assert measured.precision == "float32"


def test_a_package_that_is_absent_is_not_there() -> None:
    from importlib.util import find_spec

    from fluxforge.bench._pyg import pyg_installed

    assert pyg_installed() == (find_spec("torch_geometric") is not None)


@pytest.mark.parametrize(("options", "named"), [({"steps": 0}, "steps"), ({"seeds": 0}, "seeds")])
def test_nothing_to_measure_is_refused(options: dict[str, int], named: str) -> None:
    with pytest.raises(InputError, match=named):
        bench.bench_train(**options)
