"""MLPs against their formulas, row by row."""

import math
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.gnn import MLP, AbstractMLP, Gate, GatedMLP, Linear, parameters
from small_networks import affine, of_row

INPUTS, OUTPUTS, WIDTH = 4, 2, 3
rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, (7, INPUTS))


def linear(inputs: int, outputs: int) -> Linear:
    return Linear(*(jnp.asarray(rng.uniform(-1, 1, shape)) for shape in ((outputs, inputs), (outputs,))))


def sizes(depth: int) -> list[tuple[int, int]]:
    ends = [INPUTS, *[WIDTH] * (depth - 1), OUTPUTS]
    return list(pairwise(ends))


def plain(depth: int, activation: str = "relu") -> MLP:
    return MLP(tuple(linear(a, b) for a, b in sizes(depth)), activation)


def gated(depth: int) -> GatedMLP:
    gates = (Gate(linear(a, WIDTH), linear(a, WIDTH), linear(WIDTH, b)) for a, b in sizes(depth))
    return GatedMLP(tuple(gates))


CASES: dict[str, AbstractMLP] = {f"relu-{depth}": plain(depth) for depth in (1, 2, 3)}
CASES |= {f"gated-{depth}": gated(depth) for depth in (1, 2, 3)}


@pytest.mark.parametrize("f", CASES.values(), ids=list(CASES))
def test_every_row_is_the_formula_of_that_row_alone(f: AbstractMLP) -> None:
    outputs = np.asarray(eqx.filter_jit(f)(jnp.asarray(X)))
    wanted = np.array([of_row(f, row) for row in X])
    assert outputs.shape == (7, OUTPUTS)
    assert np.abs(outputs - wanted).max() <= 1e-13 * np.abs(wanted).max()


def test_a_gate_multiplies_a_gelu_by_a_linear_map() -> None:
    """W_f (GeLU(W_l x + b_l) ⊙ (W_r x + b_r)) + b_f with GeLU(a) = a Φ(a), Φ exact and not its tanh fit."""
    gate = Gate(linear(1, 1), linear(1, 1), linear(1, 1))
    x = 0.7
    a, b = (affine(part, np.array([x]))[0] for part in (gate.left, gate.right))
    phi = 0.5 * math.erfc(-a / math.sqrt(2.0))
    wanted = affine(gate.final, np.array([a * phi * b]))[0]
    assert float(gate(jnp.array([[x]]))[0, 0]) == pytest.approx(wanted, rel=1e-14)
    tanh_fit = 0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))
    assert abs(tanh_fit - phi) > 1e-6


@pytest.mark.parametrize(
    ("activation", "formula"),
    [
        ("relu", lambda a: np.maximum(a, 0.0)),
        ("identity", lambda a: a),
        ("gelu", lambda a: np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in a])),
    ],
)
def test_other_activations(activation: str, formula: object) -> None:
    f = plain(2, activation)
    wanted = [affine(f.layers[1], formula(affine(f.layers[0], row))) for row in X]  # type: ignore[operator]
    assert np.allclose(np.asarray(f(jnp.asarray(X))), wanted, rtol=1e-13)


def counted(kind: type[MLP] | type[GatedMLP], depth: int) -> list[tuple[int, ...]]:
    shape = eqx.filter_eval_shape(kind.create, INPUTS, OUTPUTS, depth=depth, width=WIDTH, key=jax.random.key(0))
    return [leaf.shape for leaf in jax.tree.leaves(shape)]


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_how_many_layers_and_units_there_are(depth: int) -> None:
    assert counted(MLP, depth) == [shape for a, b in sizes(depth) for shape in ((b, a), (b,))]
    one_gate = [((WIDTH, a), (WIDTH,), (WIDTH, a), (WIDTH,), (b, WIDTH), (b,)) for a, b in sizes(depth)]
    assert counted(GatedMLP, depth) == [shape for gate in one_gate for shape in gate]


def test_entries_start_within_one_over_the_root_of_the_number_of_inputs() -> None:
    layer = Linear.create(16, 500, key=jax.random.key(1))
    for entries in (layer.weight, layer.bias):
        assert 0.24 < float(jnp.abs(entries).max()) <= 0.25
        assert abs(float(entries.mean())) < 0.03
    assert not np.isin(layer.weight, layer.bias).any()


def test_parameters_are_all_entries_once() -> None:
    f = CASES["gated-2"]
    flat = np.asarray(parameters(f))
    assert sorted(flat.tolist()) == sorted(v for leaf in jax.tree.leaves(f) for v in np.ravel(leaf).tolist())
    assert flat.shape == (74,)
