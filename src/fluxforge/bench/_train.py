"""`fluxforge bench train`: steps per second of our training, and of the same network in PyTorch Geometric."""

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from fluxforge import recipe
from fluxforge._machine import find_version
from fluxforge.bench._pyg import pyg_device_name, pyg_installed, pyg_thread_counts, pyg_training, with_threads
from fluxforge.bench._step import best_seconds
from fluxforge.data._problem import AbstractSource, FixedSource
from fluxforge.data._source import source
from fluxforge.errors import InputError
from fluxforge.gnn._network import Network, parameters
from fluxforge.train._optimise import optimiser
from fluxforge.train._step import State, begin, chunk_function

ROUNDS = 15
# A step of PyTorch Geometric takes about as long as this many of ours: rounds should take equally long, so that noise
# affects both alike.
STEPS_PER_PEER_STEP = 50
PACKAGES = ("jax", "equinox", "optax", "torch", "torch_geometric")

Progress = Callable[[str], None]
Task = Callable[[int], object]


@dataclass(frozen=True)
class TrainBench:
    """The measurements of `bench_train`, with the fields of the JSON document; None without PyTorch Geometric."""

    parameters: int
    batch: int
    precision: str
    steps: int
    rounds: int
    device: str
    ours_steps_per_s: float
    pyg_device: str | None
    pyg_steps_per_s: float | None
    pyg_threads: int | None
    pyg_prepared_steps_per_s: float | None
    pyg_prepared_threads: int | None
    ratio: float | None
    ratio_prepared: float | None
    seeds: int
    seeds_steps_per_s: float
    seeds_per_s: float
    training_steps: int
    versions: Mapping[str, str | None]


def bench_train(seeds: int = 16, *, steps: int = 1_000, progress: Progress | None = None) -> TrainBench:
    """Time the paper's toy training: our loop, PyTorch Geometric's, and ours with many seeds at once.

    In every round our loop trains for at least `steps` more steps, and the others for about as long; the loops
    alternate, and the best round of each counts. Compilation is not timed. PyTorch has the number of threads at which
    it is fastest. `seeds_steps_per_s` counts the steps of all seeds, `seeds_per_s` whole trainings. Raises InputError
    for `steps` outside 1 to 1e6.
    """
    if not 1 <= steps <= 1_000_000:
        raise InputError(f"steps should be between 1 and 1e6, got {steps}")
    tell = progress or (lambda _: None)
    tell("preparing")
    spec, many = toy_training(1), toy_training(seeds)
    graphs = source(spec)
    with jax.enable_x64(spec.training.precision == "float64"):
        ours = our_training(spec, graphs)
        tasks: dict[str, Task] = {"ours": ours.run, "seeds": our_training(many, graphs).run, **_peers(ours)}
        tell("our loop" + (" and PyTorch Geometric's" if pyg_installed() else ""))
        rates = measure_rates(tasks, {"ours": steps, "seeds": steps // seeds}, others=steps // STEPS_PER_PEER_STEP)
    return record_rates(ours, rates, seeds=seeds, steps=steps)


def toy_training(seeds: int) -> recipe.Recipe:
    """The paper's first experiment as published: 516 weights, 105 graphs of two cells, MAE + η‖θ‖₁, Adam at 1e-4."""
    spec = recipe.Recipe(
        name="toy-training",
        seeds=seeds,
        data=recipe.TwoCells(graphs=100, faces="none", corner_cases=True),
        network=recipe.Network(features="simplified", layers=2, mlp="relu", depth=2, width=32, update="direct"),
        loss=recipe.Loss(supervised=recipe.Supervised(norm="l1"), sparsity=recipe.Sparsity(weight=1e-3)),
        training=recipe.Training(
            steps=90_000, batch=4, optimizer="adam", learning_rate=1e-4, schedule="constant", clip=0.0, chunk=1_000
        ),
    )
    recipe.check(spec)
    return spec


@dataclass
class OurTraining:
    """A recipe in training, by chunks, as in `fluxforge.train.train` without a folder."""

    spec: recipe.Recipe
    source: AbstractSource
    state: State
    chunk: Callable[..., tuple[State, Any]]

    def run(self, steps: int) -> None:
        """Train for `steps` more steps; returns when the device has finished."""
        end = int(self.state.step) + steps
        while (left := end - int(self.state.step)) > 0:
            self.state, _ = self.chunk(self.state, self.source, jnp.asarray(min(self.spec.training.chunk, left)))

    @property
    def first(self) -> Network:
        """The network of the first seed."""
        return jax.tree.map(lambda leaf: leaf[0] if eqx.is_array(leaf) else leaf, self.state.network)


def our_training(spec: recipe.Recipe, graphs: AbstractSource) -> OurTraining:
    """The training of a recipe on these graphs, before its first step."""
    transform = optimiser(spec.training)
    return OurTraining(spec, graphs, begin(spec, transform), chunk_function(spec, transform))


def _peers(ours: OurTraining) -> dict[str, Task]:
    """PyTorch Geometric's loops for the same weights and problems, by name and number of threads; empty without it."""
    if not pyg_installed():
        return {}
    assert isinstance(ours.source, FixedSource)
    problems = ours.source.problems
    peers = {
        name: pyg_training(ours.spec, ours.first, problems, prepared=name == "pyg_prepared")
        for name in ("pyg", "pyg_prepared")
    }
    return {
        f"{name}/{count}": with_threads(peer.run, count)
        for name, peer in peers.items()
        for count in pyg_thread_counts()
    }


def measure_rates(tasks: Mapping[str, Task], steps: Mapping[str, int], *, others: int) -> dict[str, float]:
    """Steps per second of each task, with at least `steps` of them per round, `others` for tasks not in `steps`."""
    # Half of them per call, since `best_seconds` repeats a task at least twice.
    blocks = {name: max(1, steps.get(name, others) // 2) for name in tasks}
    seconds = best_seconds({name: _repeat_in_blocks(task, blocks[name]) for name, task in tasks.items()}, rounds=ROUNDS)
    return {name: blocks[name] / seconds[name] for name in tasks}


def _repeat_in_blocks(task: Task, block: int) -> Task:
    return lambda times: task(times * block)


def record_rates(ours: OurTraining, rates: Mapping[str, float], *, seeds: int, steps: int) -> TrainBench:
    """The record of the rates, by name of the task, in steps per second."""
    (pyg, threads), (prepared, prepared_threads) = _fastest_rate(rates, "pyg"), _fastest_rate(rates, "pyg_prepared")
    device = jax.devices()[0]
    return TrainBench(
        parameters=len(parameters(ours.first)),
        batch=ours.spec.training.batch,
        precision=ours.spec.training.precision,
        steps=steps,
        rounds=ROUNDS,
        device=f"{device.platform}:{device.id} {device.device_kind}",
        ours_steps_per_s=rates["ours"],
        pyg_device=None if pyg is None else pyg_device_name(),
        pyg_steps_per_s=pyg,
        pyg_threads=threads,
        pyg_prepared_steps_per_s=prepared,
        pyg_prepared_threads=prepared_threads,
        ratio=None if pyg is None else rates["ours"] / pyg,
        ratio_prepared=None if prepared is None else rates["ours"] / prepared,
        seeds=seeds,
        seeds_steps_per_s=seeds * rates["seeds"],
        seeds_per_s=seeds * rates["seeds"] / ours.spec.training.steps,
        training_steps=ours.spec.training.steps,
        versions={"python": platform.python_version(), **{name: find_version(name) for name in PACKAGES}},
    )


def _fastest_rate(rates: Mapping[str, float], peer: str) -> tuple[float, int] | tuple[None, None]:
    """The largest rate of a peer over numbers of threads, and that number; (None, None) without the peer."""
    candidates = [
        (rate, int(name.removeprefix(f"{peer}/"))) for name, rate in rates.items() if name.startswith(f"{peer}/")
    ]
    return max(candidates) if candidates else (None, None)
