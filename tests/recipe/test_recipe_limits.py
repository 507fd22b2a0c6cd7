"""Numbers that no run could carry out: too large by themselves, or together too large for the machine."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import pytest
from msgspec import inspect
from recipe_files import ON_MESHES, PLAIN

from fluxforge.data import source
from fluxforge.errors import InputError, RecipeError
from fluxforge.graph import device_memory
from fluxforge.pipeline import discover
from fluxforge.recipe import Recipe, TwoCells, list_recipes, load, override, refuse_too_large, training_memory
from fluxforge.recipe._memory import MARGIN
from fluxforge.train import begin, chunk_function, optimiser, train

FULL = msgspec.structs.replace(
    override(ON_MESHES, {"training.polish": {}, "search": {}, "loss.residual": {}, "loss.sparsity": {}}), arms={}
)


def numbers(kind: inspect.Type, prefix: str = "") -> list[tuple[str, inspect.IntType | inspect.FloatType]]:
    """The dotted names and types of all numbers that a recipe holds."""
    match kind:
        case inspect.IntType() | inspect.FloatType():
            return [(prefix, kind)]
        case inspect.StructType():
            return [number for field in kind.fields for number in numbers(field.type, f"{prefix}.{field.name}")]
        case inspect.UnionType():
            return [number for inner in kind.types for number in numbers(inner, prefix)]
        case inspect.TupleType():
            return [number for k, inner in enumerate(kind.item_types) for number in numbers(inner, f"{prefix}[{k}]")]
        case inspect.DictType():
            return numbers(kind.value_type, f"{prefix}.name")
    return []


NUMBERS = numbers(inspect.type_info(Recipe))


def test_every_number_of_a_recipe_has_both_ends() -> None:
    assert len(NUMBERS) > 40
    for name, kind in NUMBERS:
        assert kind.le is not None or kind.lt is not None, f"{name} has no upper end"
        assert kind.ge is not None or kind.gt is not None, f"{name} has no lower end"


@pytest.mark.parametrize(
    ("field", "value", "end"),
    [
        ("training.batch", 10**7, "from 1 to 1000000"),
        ("training.steps", 10**9, "from 1 to 100000000"),
        ("training.learning_rate", 1e3, "> 0 and <= 100"),
        ("training.polish.graphs", 10**9, "from 1 to 1000000"),
        ("evaluation.rollout", 10**9, "from 1 to 1000000"),
        ("evaluation.meshes", 10**6, "from 0 to 100000"),
        ("evaluation.fourier", 1e9, "> 0 and <= 1000000.0"),
        ("search.restarts", 10**6, "from 1 to 1000"),
        ("search.seconds", 1e9, "> 0 and <= 604800"),
        ("data.meshes", 10**6, "from 1 to 100000"),
        ("network.hidden", 10**6, "from 1 to 1024"),
        ("network.width", 10**6, "from 1 to 4096"),
        ("network.layers", 100, "from 1 to 8"),
        ("network.depth", 100, "from 1 to 16"),
        ("diffusivity", 1e300, "> 0 and <= 1000000.0"),
        ("loss.supervised.weight", 1e300, "from 0 to 1000000000.0"),
        ("data.noise", 1e300, "from 0 to 100"),
    ],
)
def test_a_number_beyond_its_end_is_named_with_it(field: str, value: Any, end: str) -> None:
    with pytest.raises(RecipeError) as caught:
        override(FULL, {field: value}, "my.toml")
    kind = "whole number" if isinstance(value, int) else "number"
    assert str(caught.value) == f"my.toml: field '{field}': expected a {kind} {end}, got {value}"


@pytest.mark.parametrize(("field", "value"), [("time_step", [0.1, 1e300]), ("size", [0.5, 1e300])])
def test_a_range_beyond_its_end_is_named_with_it(field: str, value: list[float]) -> None:
    with pytest.raises(RecipeError, match=rf"field 'data.{field}\[1\]': expected a number > 0 and <= 1000000.0"):
        override(PLAIN, {f"data.{field}": value}, "my.toml")
    with pytest.raises(
        RecipeError, match=r"field 'data.time_step': expected a number > 0 and <= 1000000.0, got 1e\+300"
    ):
        override(msgspec.structs.replace(PLAIN, data=TwoCells()), {"data.time_step": 1e300}, "my.toml")


def test_what_is_shipped_lies_within_all_ends_and_fits_a_small_machine() -> None:
    for name in list_recipes():
        for preset in ("quick", "paper"):
            refuse_too_large(load(name, preset=preset), 2**30)


# ---- memory --------------------------------------------------------------------------------------------------------

SMALL = override(PLAIN, {"network.width": 64, "network.depth": 2, "training.batch": 256})


def compiled_memory(spec: Recipe) -> int:
    """The bytes that XLA sets aside for a chunk of steps, with its arguments."""
    problems = source(spec)
    with jax.enable_x64(spec.training.precision == "float64"):
        transform = optimiser(spec.training)
        state = begin(spec, transform, problems)
        lowered = chunk_function(spec, transform).lower(state, problems, jnp.asarray(3))  # type: ignore[attr-defined]
        held = lowered.compile().compiled.memory_analysis()
    assert eqx.is_array(state.step)
    return int(held.temp_size_in_bytes + held.argument_size_in_bytes)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"training.batch": 1024, "training.precision": "float64"}, marks=pytest.mark.slow),
        pytest.param({"network.width": 128, "network.depth": 4, "seeds": 2}, marks=pytest.mark.slow),
        {"network.mlp": "relu", "training.batch": 1024},
    ],
    ids=str,
)
def test_the_estimate_is_right_to_its_margin(changes: dict[str, Any]) -> None:
    """Against XLA's own account of the compiled step, where evaluation does not count."""
    spec = override(SMALL, {**changes, "evaluation.meshes": 0})
    counted = compiled_memory(spec)
    assert counted / MARGIN < training_memory(spec) < counted * MARGIN


@pytest.mark.parametrize(
    ("field", "value", "power"),
    [
        ("training.batch", 2048, 1),
        ("seeds", 8, 1),
        ("network.layers", 8, 1),
        ("training.precision", "float64", 1 / 3),
    ],
)
def test_the_estimate_grows_with_each_count(field: str, value: Any, power: float) -> None:
    """Eight times as many take eight times the memory; double precision takes twice that of single."""
    spec = override(SMALL, {"evaluation.meshes": 0, "training.batch": 256})
    more = training_memory(override(spec, {field: value})) / training_memory(spec)
    assert more == pytest.approx(8.0**power, rel=0.25)


def test_what_does_not_fit_is_refused_by_half_of_the_estimate() -> None:
    spec = override(SMALL, {"training.batch": 100_000})
    wanted = training_memory(spec)
    refuse_too_large(spec, None)
    refuse_too_large(spec, int(wanted / MARGIN) + 1)
    with pytest.raises(
        InputError, match=r"recipe 'mine': training takes about .* GiB .* lower training.batch, "
    ) as caught:
        refuse_too_large(spec, int(wanted / MARGIN) - 1)
    assert f"{wanted / 2**30:.3g} GiB" in str(caught.value)


def test_a_discovery_that_cannot_fit_ends_before_it_begins(tmp_path: Any) -> None:
    """A million graphs of 100,000 cells: thousands of terabytes. No folder is made."""
    changes = {"data.cells": [100_000, 100_000], "training.batch": 1_000_000, "search": {}}
    with pytest.raises(InputError, match=r"GiB are free: lower training.batch, data.cells or "):
        discover(override(ON_MESHES, changes), output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_polish_that_cannot_fit_is_refused_before_the_first_step() -> None:
    """Gauss–Newton of 13,000 parameters on 200,000 values: 2.6e9 entries. Nothing is trained first."""
    spec = override(SMALL, {"training.polish": {"graphs": 100_000}, "training.batch": 4})
    told: list[int] = []
    with pytest.raises(InputError, match=r"gauss-newton on \d+ parameters and 200000 values needs too much memory"):
        train(spec, source(spec), tell=lambda step, *_: told.append(step))
    assert told == []


def test_the_memory_of_the_device_is_known_on_this_machine() -> None:
    free = device_memory()
    assert free is None or free > 2**20
