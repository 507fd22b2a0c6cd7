"""Training that is interrupted and resumed, and sums and products of functions told apart from what is neither."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fluxforge import recipe
from fluxforge.distil import tabulate
from fluxforge.errors import InputError
from fluxforge.experiment import make_dataset, train_and_reduce, train_network, whole_form
from fluxforge.experiment._network import load_network
from fluxforge.experiment._properties import find_separation, separate
from fluxforge.experiment._search import search_parts
from fluxforge.run import Checkpoints
from run_files import flip_last_bit


class InterruptedTrainingError(Exception):
    pass


def small():
    return recipe.Recipe(
        name="test",
        equation="conduction",
        data=recipe.Experiment(samples=100, law="(T_P - T_N)*k_P/d_P"),
        network=recipe.Network(width=8, depth=1),
        training=recipe.Training(steps=50, chunk=20, batch=16),
        loss=recipe.Loss(supervised=recipe.Supervised()),
        search=recipe.Search(),
        seeds=2,
    )


def test_a_training_that_is_interrupted_goes_on_from_its_checkpoint_and_ends_the_same(tmp_path):
    spec = small()
    data = make_dataset(spec)
    form = whole_form(data.experiment)
    whole = train_network(form, data, spec, key=3)
    checkpoints = Checkpoints(tmp_path / "training", warn=pytest.fail)

    def stop(step, steps, error):
        if step == 40:
            raise InterruptedTrainingError

    with pytest.raises(InterruptedTrainingError):
        train_network(form, data, spec, key=3, tell=stop, checkpoints=checkpoints)
    assert (
        sorted(path.name for path in (tmp_path / "training").glob("*.safetensors"))[-1] == "step-000000040.safetensors"
    )
    steps = []
    again = train_network(form, data, spec, key=3, tell=lambda step, *_: steps.append(step), checkpoints=checkpoints)
    assert steps == [50]
    for one, other in zip(whole.layers, again.layers, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert again.error == whole.error
    with pytest.raises(InputError):
        train_network(form, data, spec, key=4, checkpoints=checkpoints)
    whole.save(tmp_path / "network.safetensors")
    kept = load_network(tmp_path / "network.safetensors", form)
    assert kept is not None
    assert np.array_equal(kept.layers[0][0], whole.layers[0][0])
    flip_last_bit(tmp_path / "network.safetensors")
    assert load_network(tmp_path / "network.safetensors", form) is None


def test_a_network_that_is_refused_is_trained_again_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("FLUXFORGE_CACHE", str(tmp_path / "cache"))

    def train(warn):
        return train_and_reduce(small(), lambda *_: None, tmp_path, warn)

    first = train(pytest.fail)
    assert train(pytest.fail).whole.error == first.whole.error
    flip_last_bit(tmp_path / "network.safetensors")
    warnings = []
    assert train(warnings.append).whole.error == first.whole.error
    assert [text.rpartition("/")[2] for text in warnings] == [
        "network.safetensors: is damaged, or not a network of this run: the network is trained again"
    ]


@dataclass(frozen=True)
class Known:
    """A function in the place of a network that errs by 1 %."""

    law: Any
    scale: float = 1.0
    error: float = 0.01

    def function(self, columns):
        return self.law(*np.moveaxis(columns, -1, 0))


def table_of(law, columns=2):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (400, columns))
    network = Known(law)
    network = Known(law, scale=float(np.sqrt(np.mean(network.function(X) ** 2))))
    return network, tabulate(tuple("xyz"[:columns]), X, network.function(X))


@pytest.mark.parametrize(
    ("law", "groups", "product"),
    [
        (lambda x, y: x**2 / 2 - np.minimum(y, 1) ** 2, ((0,), (1,)), False),
        (lambda x, y: (1 + x) / (1 + y), ((0,), (1,)), True),
        (lambda x, y, z: np.sin(y) * (x + z), ((1,), (0, 2)), True),
        (lambda x, y, z: x / z + y**2, ((1,), (0, 2)), False),
    ],
)
def test_sums_and_products_are_told_apart(law, groups, product):
    network, table = table_of(law, law.__code__.co_argcount)
    separation, check = find_separation(network, table)
    assert separation is not None
    assert (separation.groups, separation.product) == (groups, product)
    # The mean over anchors and the leading singular vector are exact for functions that separate.
    assert check.defect < 1e-12
    one, other = separate(network, table, separation)
    assert np.allclose(one * other if product else one + other, table.y, rtol=1e-10)


@pytest.mark.parametrize("law", [np.maximum, lambda x, y: 1 / (x + y**2), lambda x, y: np.maximum(x, 1.2 * y) ** 2])
def test_what_does_not_separate_is_not_separated(law):
    separation, check = find_separation(*table_of(law))
    assert separation is None
    assert not check.holds


def test_a_function_of_one_number_is_not_tested():
    assert find_separation(*table_of(np.sqrt, 1)) == (None, None)


def test_parts_are_searched_one_by_one_and_combined():
    network, table = table_of(lambda x, y: (1 + x) / (1 + y))
    separation, _ = find_separation(network, table)
    parts = tuple(
        tabulate((name,), table.X[:, [k]], part)
        for k, (name, part) in enumerate(zip("xy", separate(network, table, separation), strict=True))
    )
    wanted = recipe.Search(operators=("add", "mul", "div"), evaluations=2_000, most_complex=9)
    front = search_parts(table, parts, separation, wanted, seed=0)
    # Gauss-Newton on exact rows ends at round-off of sums over them.
    assert front.best_error < 1e-8
