"""Training of limiters in a run folder: resumed after an interruption, it gives the same networks."""

from functools import cache, partial
from pathlib import Path

import jax
import numpy as np
import pytest

from fluxforge import recipe
from fluxforge.errors import RecipeError
from fluxforge.limiter import TrainedLimiter, _train, train_limiter
from fluxforge.run import RunFolder

CHANGES = {"training.steps": 6, "training.chunk": 2, "training.checkpoint_every": 2, "training.batch": 2, "seeds": 2}
CHANGES |= {"network.width": 4, "network.depth": 1}


def small() -> recipe.Recipe:
    return recipe.override(recipe.load("limiter"), CHANGES)


def train(path: Path, stop_at: int | None = None) -> list[np.ndarray]:
    spec = small()

    def tell(what: str, done: int, total: int) -> None:
        if done == stop_at:
            raise KeyboardInterrupt

    opened = RunFolder.open(path, warn=print) if (path / "run.json").exists() else None
    with opened or RunFolder.create(path, description={}, warn=print) as folder:
        trained = train_limiter(spec, folder, tell)
        assert [record["step"] for record in folder.metrics.read()] == [2, 4, 5, 6]
    return [np.asarray(leaf) for leaf in jax.tree.leaves(trained.weights)]


def test_a_training_that_is_interrupted_and_resumed_gives_the_same_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The choice among the networks takes 2,048 steps, and is the same for the same networks.
    monkeypatch.setattr(_train, "choose_limiter", lambda weights, plan: TrainedLimiter(weights, 0, np.ones(3), ()))
    # Every run would compile its own chunks of steps.
    shared = cache(partial(_train.train_chunk, _train.plan_training(small())))
    monkeypatch.setattr(_train, "train_chunk", lambda plan, phase, steps: shared(phase, steps))
    whole = train(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", stop_at=4)
    resumed = train(tmp_path / "parts")
    assert all(np.array_equal(one, other) for one, other in zip(whole, resumed, strict=True))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"equation": "heat"}, "equation"),
        ({"network.layers": 2}, "network.layers"),
        ({"search.route": "modules"}, "search.route"),
        ({"data.noise": 0.1}, "noise"),
    ],
)
def test_recipes_of_limiters_that_contradict_themselves_are_refused(changes: dict[str, object], field: str) -> None:
    with pytest.raises(RecipeError, match=field.split(".")[-1]):
        recipe.override(recipe.load("limiter"), changes)
