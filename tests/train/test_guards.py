"""Steps whose loss or gradient is not finite or explodes are skipped and counted; a run of nothing else is refused."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_runs import TINY, chosen, graphs, opened, spoilt, weights

from fluxforge import recipe
from fluxforge.data import FixedSource
from fluxforge.errors import TrainingError
from fluxforge.gnn import parameters
from fluxforge.train import State, begin, chunk_function, optimiser, train
from fluxforge.train import _step as step_module
from fluxforge.train import _train as module

BAD = 5


class Steps(NamedTuple):
    """A run step by step: all states, the first one included, and the terms of every step."""

    states: list[State]
    terms: list[dict[str, np.ndarray]]


@cache
def chunk():  # type: ignore[no-untyped-def]
    return chunk_function(TINY, optimiser(TINY.training))


@cache
def start() -> State:
    return begin(TINY, optimiser(TINY.training))


def stepped(source: FixedSource, state: State | None = None, count: int = 40) -> Steps:
    states, terms = [state or start()], []
    for _ in range(count):
        after, means = chunk()(states[-1], source, jnp.asarray(1))
        states.append(after)
        terms.append({name: np.asarray(value) for name, value in means.items()})
    return Steps(states, terms)


@cache
def with_a_nan() -> Steps:
    return stepped(spoilt("answer", [BAD], np.nan))


def of_member(state: State, k: int) -> list[np.ndarray]:
    """Everything about a member that a step changes, but for the counts of skips."""
    kept = (state.network, state.optimiser, state.usual)
    return [np.asarray(leaf)[k] for leaf in jax.tree.leaves(kept) if eqx.is_array(leaf)]


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("k", [0, 1])
def test_a_step_that_is_not_finite_changes_nothing_but_the_count_of_skips(k: int) -> None:
    states, terms = with_a_nan()
    hit = (chosen(TINY, k) == BAD).any(axis=1)
    assert 0 < hit.sum() < 10
    for number, bad in enumerate(hit):
        before, after = states[number], states[number + 1]
        assert same(of_member(before, k), of_member(after, k)) == bad
        assert int(after.skipped[k]) == hit[: number + 1].sum()
        assert int(after.streak[k]) == (int(before.streak[k]) + 1 if bad else 0)
        assert np.isnan(terms[number]["supervised"][k]) == bad
        assert int(after.step) == number + 1


def test_the_members_of_a_run_are_told_how_many_steps_were_skipped(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as folder:
        done = train(TINY, spoilt("answer", [BAD], np.nan), folder=folder)
        lines = folder.metrics.read()
    assert done.skipped == tuple(int((chosen(TINY, k) == BAD).any(axis=1).sum()) for k in (0, 1))
    assert lines[-1]["skipped"] == list(done.skipped)
    assert np.array_equal(weights(done), np.asarray(parameters(with_a_nan().states[-1].network)))
    assert done.failed == (False, False)


def test_means_are_over_the_steps_that_were_taken() -> None:
    """A step that was not taken counts neither as a loss of zero nor at all."""
    _, means = chunk()(start(), spoilt("answer", [BAD], np.nan), jnp.asarray(40))
    for name in ("supervised", "sparsity"):
        each = np.stack([terms[name] for terms in with_a_nan().terms])
        assert np.asarray(means[name]) == pytest.approx(np.nanmean(each, axis=0), rel=1e-12)


def test_the_loss_of_a_step_is_that_of_the_graphs_it_was_shown() -> None:
    """Σ over the batch of mean |T' − F|, by hand, for a network without hidden units; and η ‖θ‖₁, η growing."""
    states, terms = stepped(graphs())
    problems = jax.tree.map(np.asarray, graphs().problems)
    shown = chosen(TINY, 1)
    for number in (0, 7, 19, 20, 39):
        before = jax.tree.map(lambda leaf: np.asarray(leaf)[1] if eqx.is_array(leaf) else leaf, states[number].network)
        agg, up = before.layers[0].messages[0].f.layers[0], before.layers[0].update.f.layers[0]
        total = 0.0
        for k in shown[number]:
            T, S, V, dt = problems.T[k], problems.S[k], problems.graph.V[k], problems.dt[k]
            flux = 2.0 / (2.0 / np.sqrt(3.0)) * (T[::-1] - T)
            rows = np.stack([T, dt * S, dt / V * (agg.weight[0, 0] * flux + agg.bias[0])])
            total += np.abs(up.weight[0] @ rows + up.bias[0] - problems.answer[k]).mean() / 2
        assert terms[number]["supervised"][1] == pytest.approx(total, rel=1e-12)
        norm = sum(np.abs(leaf).sum() for leaf in jax.tree.leaves(before) if isinstance(leaf, np.ndarray))
        assert terms[number]["sparsity"][1] == pytest.approx(1e-3 * min(1.0, number / 20) * norm, rel=1e-12)


def test_a_run_of_nothing_but_nan_is_given_up_and_its_last_good_state_kept(tmp_path: Path) -> None:
    bad = spoilt("answer", list(range(32)), np.nan)
    lines: list[dict[str, float]] = []
    for _ in range(2):  # gone on with, it fails the same way
        with (
            opened(tmp_path / "run") as folder,
            pytest.raises(
                TrainingError, match=r"^training stopped at step 20: the last 20 steps of every seed"
            ) as error,
        ):
            train(TINY, bad, folder=folder, tell=lambda step, steps, terms: lines.append(dict(terms)))
        assert "lower training.learning_rate, or set training.clip; the last good weights are in the last check" in str(
            error.value
        )
    with opened(tmp_path / "run") as folder:
        checkpoint = folder.checkpoints.latest(start(), fingerprint=recipe.fingerprint(TINY))
        records = folder.metrics.read()
    assert checkpoint is not None
    step, state = checkpoint
    assert step == 20
    for k in (0, 1):
        assert same(of_member(state, k), of_member(start(), k))
    assert np.asarray(state.streak).tolist() == [20, 20]
    assert [record["supervised"] for record in records] == [[None, None]] * 2
    assert len(lines) == 2
    assert all(np.isnan(line["supervised"]) for line in lines)


def test_without_a_folder_nothing_is_said_to_be_kept() -> None:
    with pytest.raises(TrainingError, match=r"set training\.clip$"):
        train(TINY, spoilt("answer", list(range(32)), np.inf))


def test_nan_steps_do_not_pass_for_progress() -> None:
    """A chunk without a single step taken has no loss to be the least so far."""
    state, _ = chunk()(start(), graphs(), jnp.asarray(5))
    after, means = chunk()(state, spoilt("answer", list(range(32)), np.nan), jnp.asarray(5))
    assert np.isnan(np.asarray(means["supervised"])).all()
    assert np.array_equal(after.best, state.best)
    assert np.asarray(after.stale).tolist() == (np.asarray(state.stale) + 1).tolist()


def test_a_member_that_fails_does_not_disturb_the_others() -> None:
    broken = jax.tree.map(lambda leaf: leaf.at[1].set(jnp.nan) if eqx.is_inexact_array(leaf) else leaf, start().network)
    state = eqx.tree_at(lambda s: s.network, start(), broken)
    after, _ = chunk()(state, graphs(), jnp.asarray(40))
    wanted, _ = chunk()(start(), graphs(), jnp.asarray(40))
    assert same(of_member(after, 0), of_member(wanted, 0))
    done = module.collect_trained(TINY, after)
    assert done.failed == (False, True)
    assert done.skipped == (0, 40)
    assert not module.is_finished(after, TINY.training)


@pytest.mark.parametrize(
    ("size", "usual", "number", "sane"),
    [
        (0.99e4, 1.0, 100, True),
        (1.01e4, 1.0, 100, False),
        (1.01e4, 1.0, 99, True),
        (1e-20, 1e-25, 500, False),
        (5.0, 0.0, 500, True),
        (np.inf, 1.0, 3, False),
        (np.nan, 1.0, 3, False),
    ],
)
def test_a_gradient_far_larger_than_the_usual_one_is_not_sane(
    size: float, usual: float, number: int, sane: bool
) -> None:
    loss, now, before = (jnp.asarray(value) for value in (1.0, size, usual))
    assert bool(step_module.is_sane(loss, now, before, jnp.asarray(number))) is sane


@pytest.mark.parametrize("loss", [np.nan, np.inf, -np.inf])
def test_a_loss_that_is_not_finite_is_not_sane(loss: float) -> None:
    one = jnp.asarray(1.0)
    assert not bool(step_module.is_sane(jnp.asarray(loss), one, one, jnp.asarray(3)))


def test_an_explosion_is_not_taken_once_it_is_known_what_is_usual() -> None:
    """The same graph shown before and after step 100: only later is it refused."""
    state = eqx.tree_at(lambda s: s.step, stepped(graphs(), count=5).states[-1], jnp.asarray(200, jnp.int32))
    huge = spoilt("T", list(range(32)), 1e9)
    after, _ = chunk()(state, huge, jnp.asarray(3))
    assert np.asarray(after.skipped).tolist() == [3, 3]
    assert same(of_member(after, 0), of_member(state, 0))
    early = eqx.tree_at(lambda s: s.step, state, jnp.asarray(5, jnp.int32))
    taken, _ = chunk()(early, huge, jnp.asarray(3))
    assert np.asarray(taken.skipped).tolist() == [0, 0]
