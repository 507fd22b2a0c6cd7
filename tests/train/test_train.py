"""Training runs: what decides their result, and what does not."""

from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from msgspec.structs import replace
from small_runs import TINY, graphs, opened, tiny, weights

from fluxforge import recipe
from fluxforge.train import Trained, train

Lines = list[tuple[int, int, dict[str, float]]]


def told(spec: recipe.Recipe = TINY, **options: Any) -> tuple[Trained, Lines]:
    lines: Lines = []
    done = train(spec, graphs(), tell=lambda step, steps, terms: lines.append((step, steps, dict(terms))), **options)
    return done, lines


@cache
def usual() -> tuple[Trained, Lines]:
    return told()


def test_the_same_seed_gives_the_same_networks_bit_for_bit() -> None:
    (one, lines), (other, again) = usual(), told()
    assert np.array_equal(weights(one), weights(other))
    assert lines == again
    assert [step for step, _, _ in lines] == [10, 20, 30, 40]
    assert {steps for _, steps, _ in lines} == {40}
    assert [set(terms) for _, _, terms in lines] == [{"supervised", "sparsity"}] * 4
    assert one.steps == 40
    assert (one.skipped, one.failed, one.stopped_early) == ((0, 0), (False, False), False)
    assert (one.arms, one.seeds) == (("tiny",), 2)


def test_training_lowers_the_loss() -> None:
    losses = [terms["supervised"] for _, _, terms in usual()[1]]
    assert losses[-1] < 0.7 * losses[0]


def test_another_seed_gives_other_networks() -> None:
    other = train(replace(TINY, seed=1), graphs())
    assert not np.isin(weights(usual()[0]), weights(other)).any()
    assert not np.isin(weights(other, 0), weights(other, 1)).any()


@pytest.mark.parametrize("chunk", [7, 500])
def test_the_chunk_does_not_change_the_networks(chunk: int) -> None:
    """Forty steps at once, or by sevens with five left over: bit for bit the same."""
    done, lines = told(tiny(chunk=chunk))
    assert np.array_equal(weights(done), weights(usual()[0]))
    assert [step for step, _, _ in lines] == [*range(chunk, 40, chunk), 40]


def test_more_members_do_not_change_the_first_ones_and_arms_differ_by_their_penalty_alone() -> None:
    """All seeds of the first arm come first; the second arm has the same seeds."""
    done = train(replace(TINY, arms={"light": 1e-3, "heavy": 0.3}), graphs())
    assert done.arms == ("light", "heavy")
    assert [list(done.of_arm(arm)) for arm in done.arms] == [[0, 1], [2, 3]]
    for k in range(2):
        assert weights(done, k) == pytest.approx(weights(usual()[0], k), rel=1e-12)
        assert np.abs(weights(done, 2 + k)).sum() < 0.99 * np.abs(weights(done, k)).sum()


def test_single_precision_is_single_whatever_jaxs_mode() -> None:
    spec = tiny(precision="float32")
    single = jax.tree.map(lambda leaf: leaf.astype("float32") if leaf.dtype == np.float64 else leaf, graphs())
    here = train(spec, single)
    with jax.enable_x64(False):
        there = train(spec, single)
    assert weights(here).dtype == np.float32
    assert np.array_equal(weights(here), weights(there))
    assert np.abs(weights(here) - weights(usual()[0])).max() > 1e-8
    assert jax.config.read("jax_enable_x64")


def test_double_precision_is_double_whatever_jaxs_mode() -> None:
    with jax.enable_x64(False):
        done = train(TINY, graphs())
    assert weights(done).dtype == np.float64
    assert np.array_equal(weights(done), weights(usual()[0]))


def stop(losses: np.ndarray, patience: int) -> int:
    """After how many chunks nothing has fallen by one per cent, for any member, for so many of them."""
    best, stale = np.full(losses.shape[1], np.inf), np.zeros(losses.shape[1])
    for number, loss in enumerate(losses, start=1):
        better = loss < 0.99 * best
        best, stale = np.where(better, loss, best), np.where(better, 0, stale + 1)
        if (stale >= patience).all():
            return number
    return len(losses)


def test_early_stopping_waits_for_the_last_member_to_improve(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as folder:
        whole = train(tiny(chunk=1), graphs(), folder=folder)
        losses = np.array([np.add(line["supervised"], line["sparsity"]) for line in folder.metrics.read()])
    assert not whole.stopped_early
    assert losses.shape == (40, 2)
    runs = [told(tiny(chunk=1, patience=patience)) for patience in (1, 3)]
    wanted = [stop(losses, patience) for patience in (1, 3)]
    assert [done.steps for done, _ in runs] == wanted
    assert 1 < wanted[0] < wanted[1] < 40
    assert all(done.stopped_early and not any(done.failed) for done, _ in runs)
    assert [lines[-1][0] for _, lines in runs] == wanted
