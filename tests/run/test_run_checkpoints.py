"""Checkpoints come back bit for bit, and only the newest are kept."""

import hashlib
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from run_checkpoints import F, data, pair, same_bits, save_steps, seal, steps, tree

from fluxforge.errors import InputError
from fluxforge.run import Checkpoints

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
]


def train_network(seed: int) -> Any:
    """A network, the state of its optimizer after a few steps, random keys, and odd leaves."""
    key = jax.random.key(seed)
    model = eqx.nn.MLP(2, 1, 8, 2, activation=jnp.tanh, dtype=jnp.float32, key=key)
    optimizer = optax.adam(optax.cosine_decay_schedule(1e-2, 100))
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    x = jnp.linspace(-1.0, 1.0, 32, dtype=jnp.float32).reshape(16, 2)

    @eqx.filter_jit
    def turn(model: Any, state: Any) -> Any:
        gradient = eqx.filter_grad(lambda model: jnp.mean(jax.vmap(model)(x) ** 2))(model)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(model, updates), state

    for _ in range(seed):
        model, state = turn(model, state)
    more = {"key": key, "keys": jax.random.split(key, (2, 3)), "old": jax.random.PRNGKey(seed), "name": "adam"}
    odd = (jnp.float64(seed) / 3, jnp.array([True, False]), np.float32(seed), np.full((2, 0), seed, np.int16), None)
    return model, state, more, odd


def test_a_network_its_optimizer_and_its_random_keys_come_back_bit_for_bit(checkpoints: Checkpoints) -> None:
    before, template = train_network(3), train_network(0)
    template[2]["name"] = before[2]["name"]
    checkpoints.save(12_000, before, fingerprint=F)
    assert steps(checkpoints) == pair(12_000)
    newest = checkpoints.latest(template, fingerprint=F)
    assert newest is not None
    assert newest[0] == 12_000
    same_bits(newest[1][0], eqx.tree_at(lambda m: m.activation, before[0], template[0].activation))
    same_bits(newest[1][1:], before[1:])
    np.testing.assert_array_equal(jax.random.normal(newest[1][2]["key"]), jax.random.normal(before[2]["key"]))


def test_what_comes_back_does_not_hang_on_whether_x64_is_on(checkpoints: Checkpoints) -> None:
    before = {"wide": jnp.array([1 / 3], jnp.float64), "whole": jnp.array(2**40, jnp.int64), "n": jnp.float32(0.1)}
    checkpoints.save(1, before, fingerprint=F)
    with jax.enable_x64(False):
        newest = checkpoints.latest(before, fingerprint=F)
        checkpoints.save(1, before, fingerprint=F)
    assert newest is not None
    same_bits(newest[1], before)
    with jax.enable_x64(False):
        narrow = {"wide": jnp.ones(1), "whole": jnp.int32(0), "n": jnp.float32(0)}
        with pytest.raises(InputError, match=r"leaf \['whole'\] should be int32\[\], found int64\[\]"):
            checkpoints.latest(narrow, fingerprint=F)


arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=3))
)
leaves = arrays | arrays.map(jnp.asarray) | st.integers(0, 9).map(jax.random.key) | st.none() | st.just("static")
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def zero_leaf(leaf: Any) -> Any:
    if not eqx.is_array(leaf):
        return leaf
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key(99)
    return jnp.zeros_like(leaf) if isinstance(leaf, jax.Array) else np.zeros_like(leaf)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(before=trees, step=st.integers(0, 2**40))
def test_any_tree_comes_back_bit_for_bit(before: Any, step: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    checkpoints = Checkpoints(tmp_path_factory.mktemp("any"), warn=pytest.fail)
    checkpoints.save(step, before, fingerprint=F)
    newest = checkpoints.latest(jax.tree.map(zero_leaf, before), fingerprint=F)
    assert newest is not None
    assert newest[0] == step
    same_bits(newest[1], before)


def test_the_order_of_an_array_in_memory_does_not_count(checkpoints: Checkpoints) -> None:
    wide = np.arange(24.0).reshape(4, 6)
    before = {"columns": np.asfortranarray(wide), "part": wide[::2, 1::3], "turned": wide.T}
    checkpoints.save(1, before, fingerprint=F)
    newest = checkpoints.latest(before, fingerprint=F)
    assert newest is not None
    for name, wanted in before.items():
        np.testing.assert_array_equal(newest[1][name], wanted)


def test_equal_trees_give_equal_files_and_saving_one_again_changes_nothing(checkpoints: Checkpoints) -> None:
    save_steps(checkpoints, 1)
    first = data(checkpoints, 1).stat()
    save_steps(checkpoints, 1)
    assert data(checkpoints, 1).stat().st_ino == first.st_ino
    digest, name = seal(checkpoints, 1).read_text().split()
    assert digest == hashlib.sha256(data(checkpoints, 1).read_bytes()).hexdigest()
    assert name == data(checkpoints, 1).name


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "c", warn=pytest.fail, keep=3)
    save_steps(checkpoints, *range(9, 14))
    assert steps(checkpoints) == pair(11, 12, 13)


def test_what_was_just_saved_is_kept_whatever_else_there_is(checkpoints: Checkpoints) -> None:
    save_steps(checkpoints, 8, 9, 3)
    assert steps(checkpoints) == pair(3, 8, 9)


def test_damaged_checkpoints_are_removed_and_not_counted(checkpoints: Checkpoints) -> None:
    save_steps(checkpoints, 1, 2)
    data(checkpoints, 2).write_bytes(b"")
    seal(checkpoints, 7).write_text("a SHA-256 of nothing")
    (checkpoints.folder / "step-notes.sha256").write_text("mine")
    save_steps(checkpoints, 3)
    assert steps(checkpoints) == pair(1, 3) | {"step-notes.sha256"}


def test_without_a_checkpoint_the_latest_is_none(checkpoints: Checkpoints) -> None:
    assert checkpoints.latest(tree(0), fingerprint=F) is None
    checkpoints.folder.mkdir()
    for name in ("step-1.safetensors", "step-0000000001.safetensors", "step-000000001.safetensors.old"):
        (checkpoints.folder / name).write_bytes(b"not ours")
    assert checkpoints.latest(tree(0), fingerprint=F) is None


@pytest.mark.parametrize("leaf", [np.zeros(2, complex), jnp.zeros(2, jnp.bfloat16), np.array(["a"]), np.array([None])])
def test_a_type_that_the_file_cannot_hold_is_refused_by_name(leaf: Any, checkpoints: Checkpoints) -> None:
    with pytest.raises(
        InputError, match=r"step-000000001.safetensors: leaf \['x'\]: a checkpoint cannot hold the type"
    ):
        checkpoints.save(1, {"x": leaf}, fingerprint=F)
    assert not checkpoints.folder.exists()


def test_arguments_out_of_range_are_refused(checkpoints: Checkpoints) -> None:
    with pytest.raises(ValueError, match="step should not be negative, got -1"):
        checkpoints.save(-1, {}, fingerprint=F)
    with pytest.raises(ValueError, match="keep should be at least 1, got 0"):
        Checkpoints(checkpoints.folder, warn=pytest.fail, keep=0)
