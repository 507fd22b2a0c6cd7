"""Recipes with shorter steps: which steps, and what a loss can ask for there."""

from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge.data import source
from fluxforge.pipeline import ladder, with_steps
from fluxforge.pipeline._problems import HALVINGS, draw_problems, judged_steps, needs_small_steps, with_shortest_steps
from fluxforge.run import add_seconds

ON_MESHES = recipe.Recipe(name="meshes", data=recipe.Meshes(fourier=(0.05, 0.5)))
ON_PAIRS = recipe.Recipe(name="pairs", data=recipe.Pairs(time_step=(0.01, 0.2)))
SUPERVISED = recipe.Loss(supervised=recipe.Supervised())
RESIDUALS = {
    "hermite": recipe.Residual(kind="hermite"),
    "trapezoid": recipe.Residual(theta=0.5),
    "backward": recipe.Residual(theta=1.0),
    "forward": recipe.Residual(theta=0.0),
    "between": recipe.Residual(theta=0.75),
}


def spec(loss: recipe.Loss, layers: int = 1, hops: int = 1) -> recipe.Recipe:
    return replace(ON_MESHES, loss=loss, network=recipe.Network(layers=layers, hops=hops))  # type: ignore[arg-type]


def test_the_ladder_halves_the_longest_step_trained_with() -> None:
    steps = ladder(ON_MESHES)
    assert steps[0] == 0.5
    assert len(steps) == HALVINGS + 1 == 8
    assert all(long == 2.0 * short for long, short in pairwise(steps))
    assert ladder(ON_PAIRS)[0] == 0.2
    assert ladder(ON_PAIRS)[-1] == pytest.approx(0.2 / 128)


def test_formulas_are_judged_at_five_steps_from_end_to_end_of_the_trained_range() -> None:
    for spec, low, high in ((ON_MESHES, 0.05, 0.5), (ON_PAIRS, 0.01, 0.2)):
        steps = judged_steps(spec)
        assert len(steps) == 5
        assert (steps[0], steps[-1]) == pytest.approx((high, low))
        assert np.diff(np.log(steps)) == pytest.approx(np.full(4, np.log(low / high) / 4))
    assert judged_steps(with_steps(ON_MESHES, 0.3, 0.3)) == (0.3,)
    assert judged_steps(replace(ON_PAIRS, data=recipe.TwoCells(time_step=0.1))) == (0.1,)


def test_the_shortest_steps_are_the_lowest_octave_of_the_range() -> None:
    assert with_shortest_steps(ON_MESHES).data.fourier == (0.05, 0.1)  # type: ignore[union-attr]
    assert with_shortest_steps(ON_PAIRS).data.time_step == (0.01, 0.02)  # type: ignore[union-attr]
    narrow = with_steps(ON_PAIRS, 0.1, 0.15)
    assert with_shortest_steps(narrow).data.time_step == (0.1, 0.15)  # type: ignore[union-attr]


def test_nothing_but_the_steps_changes() -> None:
    for own, name in ((ON_MESHES, "fourier"), (ON_PAIRS, "time_step")):
        other = with_steps(own, 0.3, 0.4)
        assert getattr(other.data, name) == (0.3, 0.4)
        assert replace(other, data=replace(other.data, **{name: getattr(own.data, name)})) == own


def test_a_loss_that_looks_ahead_has_a_limit_only() -> None:
    needed = {name: needs_small_steps(spec(recipe.Loss(residual=each))) for name, each in RESIDUALS.items()}
    assert needed == {"hermite": True, "trapezoid": True, "backward": True, "forward": False, "between": True}
    # A hermite residual has no θ, whatever stands there.
    assert needs_small_steps(spec(recipe.Loss(residual=recipe.Residual(kind="hermite", theta=0.0))))
    assert not needs_small_steps(spec(SUPERVISED))


def test_problems_are_drawn_by_seed_and_number() -> None:
    spec = recipe.Recipe(name="cells", data=recipe.TwoCells())
    batches = source(spec, dtype="float64")
    one, again, other = (draw_problems(batches, spec, number, 5) for number in (7, 7, 8))
    assert one.T.shape == (5, 2)
    assert one.T.dtype == np.float64
    assert np.array_equal(one.T, again.T)
    assert not np.array_equal(one.T, other.T)
    assert not np.array_equal(one.T, draw_problems(batches, replace(spec, seed=1), 7, 5).T)


def test_the_same_problems_come_with_another_step() -> None:
    """What constants are compared on, step by step, differs by nothing else."""
    short, long = (
        draw_problems(source(with_steps(ON_PAIRS, step, step), dtype="float64"), ON_PAIRS, 3, 5) for step in (0.01, 0.2)
    )
    assert np.array_equal(short.T, long.T)
    assert np.array_equal(short.graph.V, long.graph.V)
    np.testing.assert_allclose(np.asarray(long.dt) / np.asarray(short.dt), 20.0)


def test_seconds_add_up_under_their_name_even_when_a_stage_fails() -> None:
    seconds: dict[str, float] = {"distil": 5.0}
    with add_seconds(seconds, "distil"):
        pass
    with pytest.raises(KeyError), add_seconds(seconds, "check"):
        raise KeyError
    assert seconds["distil"] >= 5.0
    assert seconds["check"] >= 0.0
