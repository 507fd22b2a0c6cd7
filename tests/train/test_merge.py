"""Merging ReLU units: the same function on the rows it was merged on, with no more units than lines."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.errors import InputError
from fluxforge.gnn import MLP, Linear
from fluxforge.train import merge_units
from fluxforge.train._merge import FLOOR, NOISE, PARALLEL
from strategies import few

Unit = tuple[np.ndarray, float, float]


def mlp(units: list[Unit], bias: float = 0.0) -> MLP:
    """Σ weight relu(w·x + b) + bias."""
    W, b, out = (np.array(part) for part in zip(*units, strict=True))
    first = Linear(jnp.asarray(W), jnp.asarray(b))
    return MLP((first, Linear(jnp.asarray(out[None, :]), jnp.asarray([bias]))))


def of(f: MLP, x: np.ndarray) -> np.ndarray:
    first, last = ((np.asarray(layer.weight), np.asarray(layer.bias)) for layer in f.layers)
    return np.maximum(x @ first[0].T + first[1], 0.0) @ last[0].T + last[1]


def moved(f: MLP, x: np.ndarray) -> float:
    """How far merging moves the function, in units of its size."""
    wanted = of(f, x)
    merged = of(merge_units(f, x), x)
    assert np.isfinite(merged).all()
    return float(np.abs(merged - wanted).max() / max(1.0, np.abs(wanted).max()))


class Plan(NamedTuple):
    """What is planted: for every line its further units, and units that are on no line."""

    inputs: int
    lines: list[list[str]]
    extras: list[str]
    seed: int


PLANS = st.builds(
    Plan,
    inputs=st.integers(1, 4),
    lines=st.lists(st.lists(st.sampled_from(["same", "reversed", "cancelled"]), max_size=3), max_size=3),
    extras=st.lists(st.sampled_from(["on", "off", "blank", "unread"]), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
)


def planted(plan: Plan) -> tuple[MLP, np.ndarray]:
    """A network of that plan, its units shuffled, and rows that lie on both sides of every line."""
    rng = np.random.default_rng(plan.seed)
    units: list[Unit] = []
    for k, others in enumerate(plan.lines):
        u = rng.standard_normal(plan.inputs)
        u, size = u / np.linalg.norm(u), rng.uniform(0.5, 2.0, 2)
        # Offsets far enough apart, of whatever sign, that no two lines are one.
        units.append((size[0] * u, size[0] * (0.05, 0.13, -0.22)[k], float(rng.choice([-1, 1]) * size[1])))
        for other in others:
            w, b, out = units[-1]
            grown, sign = rng.uniform(0.5, 2.0), -1.0 if other == "reversed" else 1.0
            weight = -out / grown if other == "cancelled" else rng.uniform(0.5, 2.0)
            units.append((sign * grown * w, sign * grown * b, float(weight)))
    for extra in plan.extras:
        w = rng.uniform(-1, 1, plan.inputs)
        reach = 0.1 + np.abs(w).sum()
        bias = {"on": reach, "off": -reach, "blank": rng.uniform(-1, 1), "unread": 0.0}[extra]
        units.append((0.0 * w if extra == "blank" else w, float(bias), 0.0 if extra == "unread" else 1.3))
    order = rng.permutation(len(units))
    return mlp([units[k] for k in order], float(rng.uniform(-1, 1))), rng.uniform(-1.0, 1.0, (300, plan.inputs))


@few(120)
@given(plan=PLANS)
def test_planted_structure_is_merged_exactly(plan: Plan) -> None:
    """Duplicates, reversed ones, ones that cancel, units always on, always off, blank or unread."""
    f, x = planted(plan)
    assert moved(f, x) <= 1e-10
    assert len(merge_units(f, x).layers[0].bias) <= 2 * (len(plan.lines) + 1)


@few(50)
@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 12), inputs=st.integers(1, 4))
def test_any_network_moves_by_no_more_than_noise_per_unit(seed: int, width: int, inputs: int) -> None:
    """Units that hardly ever fire, or hardly ever rest, are taken for what they nearly are."""
    rng = np.random.default_rng(seed)
    f = mlp([(rng.standard_normal(inputs), rng.standard_normal(), rng.standard_normal()) for _ in range(width)])
    x = rng.uniform(-1, 1, (200, inputs))
    noise = max(NOISE * float(np.ptp(of(f, x))), FLOOR)
    sizes = np.linalg.norm(np.asarray(f.layers[0].weight), axis=1) * np.abs(np.asarray(f.layers[1].weight[0]))
    # Lines closer than PARALLEL count as one: at most so far apart where rows are no longer than √inputs.
    apart = PARALLEL * (inputs + 1) * sizes.sum()
    assert np.abs(of(merge_units(f, x), x) - of(f, x)).max() <= width * noise + apart


def test_what_cancels_is_gone() -> None:
    w = np.array([1.0, 2.0])
    x = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    for units in (
        [(w, 0.1, 1.0), (2 * w, 0.2, -0.5)],  # a duplicate with the opposite weight
        [(w, 0.1, 1.0), (-w, -0.1, -1.0), (-w, 5.0, 1.0)],  # t, and a unit always on that is 5 − t
    ):
        f = mlp(units, 0.3)
        assert moved(f, x) <= 1e-13
        assert np.ptp(of(merge_units(f, x), x)) <= 1e-13


def test_units_on_one_line_become_two() -> None:
    """P relu(t) + q relu(−t) + l t + d, written with seven units."""
    w = np.array([0.6, -0.8])
    far = np.array([0.6, -0.8])
    units = [(s * w, s * 0.2, a) for s, a in ((1, 1.0), (3, -0.5), (-1, 2.0), (-0.5, 1.0))]
    units += [(far, 4.0, 1.5), (far, -4.0, 9.0), (-2 * far, 6.0, -0.25)]
    x = np.random.default_rng(1).uniform(-1, 1, (100, 2))
    f = mlp(units)
    merged = merge_units(f, x)
    assert len(merged.layers[0].bias) == 2
    assert moved(f, x) <= 1e-13
    slope = 1.5 + 0.5
    assert np.asarray(merged.layers[1].weight[0] * jnp.linalg.norm(merged.layers[0].weight, axis=1)) == pytest.approx(
        [1.0 - 1.5 + slope, 2.0 + 0.5 - slope], rel=1e-12
    )


def test_a_linear_network_is_a_line_through_the_origin() -> None:
    w = np.array([1.0, -2.0, 0.5])
    x = np.random.default_rng(2).uniform(-1, 1, (60, 3))
    merged = merge_units(mlp([(w, 9.0, 0.5), (w, 9.0, 0.5)]), x)
    assert len(merged.layers[0].bias) == 2
    assert np.asarray(merged.layers[0].bias).tolist() == [0.0, 0.0]
    assert float(merged.layers[1].bias[0]) == pytest.approx(9.0, rel=1e-14)
    assert of(merged, x)[:, 0] == pytest.approx(x @ w + 9.0, rel=1e-12)


def test_the_strongest_line_comes_first() -> None:
    weak, strong = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    x = np.random.default_rng(3).uniform(-1, 1, (60, 2))
    for units in ([(weak, 0.1, 0.5), (strong, 0.1, 3.0)], [(strong, 0.1, 3.0), (weak, 0.1, 0.5)]):
        merged = merge_units(mlp(units), x)
        assert np.asarray(merged.layers[0].weight[0]) == pytest.approx(np.sqrt(3) * strong, abs=1e-13)
        assert np.asarray(merged.layers[0].weight[1]) == pytest.approx(-np.sqrt(3) * strong, abs=1e-13)


def test_nothing_is_nothing() -> None:
    merged = merge_units(mlp([(np.zeros(2), 0.0, 0.0)], 0.25), np.ones((3, 2)))
    assert np.asarray(of(merged, np.ones((3, 2)))).tolist() == [[0.25]] * 3


@pytest.mark.parametrize(
    "f",
    [
        MLP(mlp([(np.ones(2), 0.0, 1.0)]).layers, "gelu"),
        MLP(mlp([(np.ones(2), 0.0, 1.0)]).layers[:1]),
        eqx.tree_at(
            lambda f: (f.layers[1].weight, f.layers[1].bias),
            mlp([(np.ones(2), 0.0, 1.0)]),
            (jnp.ones((2, 1)), jnp.ones(2)),
        ),
    ],
    ids=["gelu", "one layer", "two outputs"],
)
def test_what_cannot_be_merged_is_refused(f: MLP) -> None:
    with pytest.raises(InputError, match="only ReLU networks of two layers with one output can be merged"):
        merge_units(f, np.ones((3, 2)))
