"""Answers of other exchange laws, and noise on them."""

from collections.abc import Callable
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge.data import Problem, exact_step, scale_step, source, unseen_meshes, unseen_problems
from fluxforge.scheme import Hop

FLUX = "alpha*A/delta*(T_N - T_P)"
COUNT = 1000
DATA = {
    "pairs": recipe.Pairs(),
    "two-cells": recipe.TwoCells(graphs=40, faces="random"),
    "meshes": recipe.Meshes(meshes=2, cells=(12, 20), engine="builtin"),
}


@cache
def sampler(kind: str, law: str | None, noise: float) -> Callable[[jax.Array], Problem]:
    data = replace(DATA[kind], law=law, noise=noise)
    spec = recipe.Recipe(name="x", data=data, loss=recipe.Loss(supervised=recipe.Supervised()), diffusivity=1.7)
    batches = source(spec, dtype="float64")
    return eqx.filter_jit(lambda key: batches.batch(key, COUNT))


def drawn(kind: str, *, law: str | None = None, noise: float = 0.0, seed: int = 5) -> Problem:
    return sampler(kind, law, noise)(jax.random.key(seed))


def first(p: Problem, count: int) -> Problem:
    return jax.tree.map(lambda leaf: np.asarray(leaf[:count]), p)


def by_hand(p: Problem, message: str) -> np.ndarray:
    """T + Δt (1/V Σ message + S) with plain NumPy, edge by edge."""
    edge = p.graph.hops[Hop.EDGE]
    T, V, mask, geometry = p.T, p.graph.V, edge.mask, edge.geometry
    shown = p.graph.shown["dirichlet"]
    answer = np.array(T)
    for k, c, s in np.argwhere(mask):
        node = int(edge.ends["N"][k, c, s])
        T_N = float(shown.scale[k, node] * T[k, int(shown.cell[k, node])] + shown.constant[k, node])
        A, delta, n_x, T_P = (*(geometry[name][k, c, s] for name in ("A", "delta", "n_x")), T[k, c])
        flux = A / delta * (T_N - T_P)
        sent = {
            "cubic": flux + 0.15 * A / delta * (T_N - T_P) ** 3,
            "volume": V[k, c] * flux,
            "directional": (1 + 0.5 * n_x**2) * flux,
        }[message]
        answer[k, c] += float(p.dt[k]) * sent / V[k, c]
    return answer + p.dt[:, None] * p.S


LAWS = {
    "cubic": "A/delta*(T_N - T_P) + 0.15*A/delta*(T_N - T_P)**3",
    "volume": "V*A/delta*(T_N - T_P)",
    "directional": "(1 + 0.5*n_x**2)*A/delta*(T_N - T_P)",
}


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        ("pairs", "cubic"),
        pytest.param("pairs", "volume", marks=pytest.mark.slow),
        ("pairs", "directional"),
        ("two-cells", "cubic"),
        ("meshes", "cubic"),
    ],
)
def test_the_answer_is_that_of_the_law(kind: str, law: str) -> None:
    p = first(drawn(kind, law=LAWS[law]), 8)
    live = p.graph.live
    # A sum of a few messages of size one: round-off only.
    assert p.answer[live] == pytest.approx(by_hand(p, law)[live], rel=1e-13, abs=1e-14)
    assert np.abs(p.answer - first(drawn(kind), 8).answer)[live].max() > 1e-3


@pytest.mark.parametrize("kind", ["pairs", "two-cells", pytest.param("meshes", marks=pytest.mark.slow)])
def test_the_law_of_heat_spelt_out_is_the_default(kind: str) -> None:
    plain, spelt = drawn(kind), drawn(kind, law=FLUX)
    assert np.asarray(spelt.T) == pytest.approx(np.asarray(plain.T), rel=0.0, abs=1e-14)  # within [-1, 1], as below
    assert np.asarray(spelt.answer) == pytest.approx(np.asarray(plain.answer), rel=1e-13, abs=1e-14)


def test_other_steps_have_the_same_law_and_the_same_noise() -> None:
    p = jax.tree.map(lambda leaf: leaf[:8], drawn("pairs", law=LAWS["cubic"], noise=0.1))
    short = scale_step(p, jnp.asarray(0.5))
    assert short.law == p.law
    change, half = (np.asarray(each.answer - each.T) for each in (p, short))
    # An explicit step without memory: half the step is half the change, noise included.
    assert half == pytest.approx(0.5 * change, rel=1e-9, abs=1e-14)
    clean = jax.jit(jax.vmap(exact_step))(p, p.T)
    assert np.asarray(clean) == pytest.approx(by_hand(first(p, 8), "cubic"), rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("kind", DATA)
def test_noise_has_the_size_that_was_asked_for_and_depends_on_the_key_alone(kind: str) -> None:
    # Of pairs, these are drawn by other tests too.
    law = LAWS["cubic"] if kind == "pairs" else None
    clean = drawn(kind, law=law)
    noisy, again, other = (drawn(kind, law=law, noise=0.1, seed=seed) for seed in (5, 5, 6))
    # Two programs: the same fields, within [-1, 1], up to a few roundings that the compiler may place differently.
    assert np.asarray(noisy.T) == pytest.approx(np.asarray(clean.T), rel=0.0, abs=1e-14)
    assert np.asarray(noisy.answer == again.answer).all()
    live = np.asarray(clean.graph.live)
    change = np.where(live, clean.answer - clean.T, 0.0)
    rms = np.sqrt((change**2).sum(axis=1) / live.sum(axis=1))
    at_work = rms > 0
    unit = (np.asarray(noisy.answer - clean.answer) / np.where(at_work, rms, 1.0)[:, None])[live & at_work[:, None]]
    if kind == "two-cells":
        # A fixed set of 45 graphs drawn again and again: 40 random ones are 80 independent numbers.
        assert unit.std() == pytest.approx(0.1, rel=0.35)
    else:
        # 2,000 numbers or more: the spread of a standard deviation is 1/sqrt(2n), 1.6 %; five times that.
        assert unit.std() == pytest.approx(0.1, rel=0.08)
        assert abs(unit.mean()) < 5 * 0.1 / np.sqrt(len(unit))
        assert not np.asarray(noisy.answer == other.answer).any(axis=1).all()


def test_unseen_meshes_answer_by_the_law_too() -> None:
    wanted = recipe.Evaluation(meshes=2, cells=20, engine="builtin")
    with jax.enable_x64(True):
        around = unseen_meshes(wanted, 0)
        law = recipe.exchange_law(recipe.Pairs(law=LAWS["cubic"]))
        p = unseen_problems(around, 0, fourier=0.5, law=law, size=2.0)
    p = first(p, 2)
    live = p.graph.live
    assert p.answer[live] == pytest.approx(by_hand(p, "cubic")[live], rel=1e-12, abs=1e-13)
