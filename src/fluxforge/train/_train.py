"""A training run: from random weights or the last checkpoint to the last step, with logging and failure handling."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._machine import release_programs
from fluxforge.data._problem import AbstractSource
from fluxforge.errors import TrainingError
from fluxforge.gnn._flux_form import FluxNetwork
from fluxforge.gnn._network import AbstractNetwork, Network
from fluxforge.recipe._fingerprint import fingerprint
from fluxforge.recipe._recipe import Polish, Recipe, Training
from fluxforge.run._folder import RunFolder
from fluxforge.train._optimise import learning_rate, optimiser, polish, refuse_large_jacobian
from fluxforge.train._step import Means, State, begin, chunk_function

# Folded into the seed's key for the problems of the polish.
_POLISH_KEY = 2**28
# Called with the step, the number of steps, and each loss term's mean over the seeds.
Tell = Callable[[int, int, Mapping[str, float]], None]


@dataclass(frozen=True)
class Trained:
    """The networks of a run, stacked along a first axis: all seeds of the first arm, then of the next.

    `failed` marks members that ended with too many skipped steps in sequence: their weights are those before the first
    of these.
    """

    network: AbstractNetwork
    arms: tuple[str, ...]
    seeds: int
    steps: int
    skipped: tuple[int, ...]
    failed: tuple[bool, ...]
    stopped_early: bool

    def member(self, index: int) -> Network:
        """One of the networks, without the first axis; a run of networks in the form of a flux has `flux_member`."""
        network = self.any_member(index)
        assert isinstance(network, Network)
        return network

    @property
    def layered(self) -> Network:
        """All networks, if they are networks of layers, as in the paper."""
        assert isinstance(self.network, Network)
        return self.network

    def flux_member(self, index: int) -> FluxNetwork:
        """One of the networks in the form of a flux, without the first axis."""
        network = self.any_member(index)
        assert isinstance(network, FluxNetwork)
        return network

    def any_member(self, index: int) -> AbstractNetwork:
        """One of the networks, of either form."""
        return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, self.network)

    def of_arm(self, arm: str) -> range:
        """The indices of the members of an arm."""
        first = self.arms.index(arm) * self.seeds
        return range(first, first + self.seeds)


def train(
    spec: Recipe, source: AbstractSource, *, folder: RunFolder | None = None, tell: Tell | None = None
) -> Trained:
    """Train the networks of a recipe; with a folder, resume from its last checkpoint and write metrics and checkpoints.

    Nothing is written in a folder that is not locked. A run that was killed and resumed gives the same networks as an
    uninterrupted one, bit for bit on one kind of CPU: a batch depends on the seed and the step alone, and checkpoints
    hold everything else. Raises TrainingError if every member failed, InputError if the polish would not fit in memory.
    """
    release_programs()
    with jax.enable_x64(spec.training.precision == "float64"):
        run = _Run(spec, source, folder, tell or (lambda *_: None))
        state = run.start()
        if spec.training.polish is not None:
            _refuse_polish(state, source, spec.training.polish)
        state = run.run_to_end(state)
    trained = collect_trained(spec, state)
    return trained if spec.training.polish is None else _polish_members(trained, spec, source, spec.training.polish)


def _refuse_polish(state: State, source: AbstractSource, how: Polish) -> None:
    """Raise before training if the polish after it would not fit in memory."""
    values = jax.eval_shape(lambda key: source.batch(key, how.graphs).T, jax.random.key(0)).size
    members = len(state.skipped)
    weights = jax.tree.leaves(eqx.filter(state.network, eqx.is_inexact_array))
    refuse_large_jacobian(how, rows=values, parameters=sum(leaf.size for leaf in weights) // members)


def _polish_members(trained: Trained, spec: Recipe, source: AbstractSource, how: Polish) -> Trained:
    """Every member after the second-order phase, in float64, all on the same set of problems."""
    with jax.enable_x64(True):
        key = jax.random.fold_in(jax.random.key(spec.seed), _POLISH_KEY)
        problems = eqx.filter_jit(lambda key: source.batch(key, how.graphs))(key)
        problems = jax.tree.map(lambda leaf: leaf.astype("float64") if eqx.is_inexact_array(leaf) else leaf, problems)
        members = [
            polish(trained.any_member(k), problems, spec.loss, how) for k in range(len(trained.arms) * trained.seeds)
        ]
        network = jax.tree.map(lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *members)
    return replace(trained, network=network)


@dataclass
class _Run:
    """Settings of a run, and the step of its last checkpoint."""

    spec: Recipe
    source: AbstractSource
    folder: RunFolder | None
    tell: Tell
    saved: int = -1

    def start(self) -> State:
        """Random weights, or the last checkpoint; metrics of later steps, which are repeated, are removed."""
        state = begin(self.spec, optimiser(self.spec.training), self.source)
        if self.folder is None:
            return state
        checkpoint = self.folder.checkpoints.latest(state, fingerprint=fingerprint(self.spec))
        step, state = (0, state) if checkpoint is None else checkpoint
        if not self.folder.locked:
            self.folder = None
            return state
        self.folder.metrics.truncate(step)
        self.saved = step if checkpoint else -1
        return state

    def run_to_end(self, state: State) -> State:
        """Train chunk by chunk to the last step; on any interruption the last logged state is saved."""
        chunk = chunk_function(self.spec, optimiser(self.spec.training))
        steps = self.spec.training.steps
        try:
            while (step := int(state.step)) < steps and not is_finished(state, self.spec.training):
                after, means = chunk(state, self.source, jnp.asarray(min(self.spec.training.chunk, steps - step)))
                self._log(after, means)
                state = after
                self.tell(int(state.step), steps, {name: _mean(value) for name, value in means.items()})
                if int(state.step) - max(self.saved, 0) >= self.spec.training.checkpoint_every:
                    self._save(state)
        finally:
            self._save(state)
        _refuse_failure(state, self.spec.training, kept=self.folder is not None)
        return state

    def _log(self, state: State, means: Means) -> None:
        if self.folder is None:
            return
        terms = {name: np.asarray(value, float).tolist() for name, value in means.items()}
        rate = float(learning_rate(self.spec.training)(int(state.step)))
        skipped = np.asarray(state.skipped).tolist()
        self.folder.metrics.append({"step": int(state.step), **terms, "skipped": skipped, "learning_rate": rate})

    def _save(self, state: State) -> None:
        if self.folder is not None and int(state.step) > self.saved:
            self.folder.metrics.sync()
            self.folder.checkpoints.save(int(state.step), state, fingerprint=fingerprint(self.spec))
            self.saved = int(state.step)


def _mean(values: Float[Array, " members"]) -> float:
    """The mean over the members that took a step; NaN if none took one."""
    finite = np.asarray(values)[np.isfinite(values)]
    return float(finite.mean()) if finite.size else math.nan


def _failed_members(state: State, spec: Training) -> np.ndarray:
    return np.asarray(state.streak) >= spec.most_skips


def is_finished(state: State, spec: Training) -> bool:
    """Whether every member has failed, or none has improved for `patience` chunks."""
    patient = not spec.patience or bool((np.asarray(state.stale) < spec.patience).any())
    return bool(_failed_members(state, spec).all()) or not patient


def _refuse_failure(state: State, spec: Training, *, kept: bool) -> None:
    if not (failed := _failed_members(state, spec)).all():
        return
    where = "; the last good weights are in the last checkpoint" if kept else ""
    raise TrainingError(
        f"training stopped at step {int(state.step)}: the last {int(np.asarray(state.streak).min())} steps of "
        f"{'every seed' if len(failed) > 1 else 'the only seed'} had a loss or gradient that is not finite or "
        f"exploded: lower training.learning_rate, or set training.clip{where}"
    )


def collect_trained(spec: Recipe, state: State) -> Trained:
    return Trained(
        network=state.network,
        arms=tuple(spec.arms) or (spec.name,),
        seeds=spec.seeds,
        steps=int(state.step),
        skipped=tuple(int(count) for count in np.asarray(state.skipped)),
        failed=tuple(bool(flag) for flag in _failed_members(state, spec.training)),
        stopped_early=int(state.step) < spec.training.steps,
    )
