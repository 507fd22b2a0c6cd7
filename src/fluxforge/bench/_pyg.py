"""The same training in PyTorch Geometric, as its users write it: classes, a loader, an optimiser step per batch.

Faster options of its public interface are used if they need no extra code: features are computed once, the penalty is
one sum over all weights, Adam is fused. PyTorch is imported only in the functions that use it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any

import equinox as eqx
import jax
import numpy as np

from fluxforge import recipe
from fluxforge.data._problem import Problem
from fluxforge.gnn._network import Network
from fluxforge.scheme._scheme import Hop


@dataclass(frozen=True)
class PygTraining:
    """A network in training: θ ← θ − Adam(∇(MAE + η‖θ‖₁)) for every batch."""

    model: Any
    weights: list[Any]
    optimiser: Any
    batches: Iterator[Any]
    eta: float
    device: Any

    def run(self, steps: int) -> None:
        """Train for `steps` more steps; returns when the device has finished."""
        import torch

        for batch in islice(self.batches, steps):
            there = batch if self.device.type == "cpu" else batch.to(self.device, non_blocking=True)
            self.optimiser.zero_grad()
            pyg_loss(self.model, there, weights=self.weights, eta=self.eta).backward()
            self.optimiser.step()
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def pyg_training(spec: recipe.Recipe, network: Network, problems: Problem, *, prepared: bool = False) -> PygTraining:
    """The training of a recipe for a network and problems; with `prepared`, the batches are made once beforehand."""
    import torch
    from torch_geometric.loader import DataLoader

    device = pyg_device()
    model = pyg_network(network).to(device)
    weights = list(model.parameters())
    loader = DataLoader(pyg_graphs(problems), batch_size=spec.training.batch, shuffle=True)
    batches = [batch.to(device) for batch in loader] if prepared else loader
    return PygTraining(
        model=model,
        weights=weights,
        optimiser=torch.optim.Adam(weights, lr=spec.training.learning_rate, fused=True),
        batches=_repeat_batches(batches),
        eta=spec.loss.sparsity.weight if spec.loss.sparsity else 0.0,
        device=device,
    )


def pyg_installed() -> bool:
    """Whether PyTorch Geometric is installed."""
    try:
        import torch_geometric  # noqa: F401
    except ImportError:
        return False
    return True


def pyg_device() -> Any:
    """The GPU if PyTorch has one, otherwise the CPU, as a torch.device."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def pyg_device_name() -> str:
    """The name of the device: that of the GPU, or `cpu`."""
    import torch

    return torch.cuda.get_device_name() if pyg_device().type == "cuda" else "cpu"


def pyg_thread_counts() -> tuple[int, ...]:
    """Numbers of threads to try: for a small network, few threads are often the fastest."""
    import torch

    return tuple(sorted({1, 2, torch.get_num_threads()}))


def with_threads(task: Callable[[int], object], count: int) -> Callable[[int], object]:
    """The task, run with `count` threads of PyTorch."""
    import torch

    def run(steps: int) -> None:
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            task(steps)
        finally:
            torch.set_num_threads(before)

    return run


def pyg_loss(model: Any, batch: Any, *, weights: list[Any], eta: float) -> Any:
    """The loss of a batch: mean of |T' − F(T)| over the cells, plus η‖θ‖₁."""
    import torch

    error = torch.nn.functional.l1_loss(model(batch), batch.y)
    return error + eta * torch.nn.utils.parameters_to_vector(weights).abs().sum()


def pyg_graphs(problems: Problem) -> list[Any]:
    """Each problem as a graph: x = (T, Δt·S, Δt/V), edge_attr = α·A/δ·(T_N − T_P), y = F(T)."""
    import torch
    from torch_geometric.data import Data

    def one(problem: Problem) -> Any:
        edge = problem.graph.hops[Hop.EDGE]
        P, N = (edge.ends[end][edge.mask] for end in ("P", "N"))
        weight = problem.parameters["alpha"] * (edge.geometry["A"] / edge.geometry["delta"])[edge.mask]
        x = np.stack([problem.T, problem.dt * problem.S, problem.dt / problem.graph.V], axis=-1)
        return Data(
            x=torch.from_numpy(x),
            edge_index=torch.from_numpy(np.stack([N, P]).astype(np.int64)),
            edge_attr=torch.from_numpy((weight * (problem.T[N] - problem.T[P]))[:, None]),
            y=torch.from_numpy(problem.answer[:, None]),
        )

    on_host = jax.tree.map(np.array, problems)
    return [one(jax.tree.map(itemgetter(k), on_host)) for k in range(len(on_host.dt))]


def pyg_network(network: Network) -> Any:
    """The PyTorch model with our network's layers and weights.

    In a layer an MLP of the edge is summed over neighbours, and an MLP of the node follows.
    """
    import torch
    from torch import nn

    leaves = [np.array(leaf) for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))]
    layer = _layer_class()

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(layer(_mlp(own.messages[0].f), _mlp(own.update.f)) for own in network.layers)

        def forward(self, data: Any) -> Any:
            h, source, scale = data.x.split(1, dim=1)
            for each in self.layers:
                h = each(h, source, scale, data.edge_index, data.edge_attr)
            return h

    model = Model().to(getattr(torch, str(leaves[0].dtype)))
    with torch.no_grad():
        for parameter, leaf in zip(model.parameters(), leaves, strict=True):
            parameter.copy_(torch.from_numpy(leaf))
    return model


def _layer_class() -> Any:
    import torch
    from torch_geometric.nn import MessagePassing

    class Layer(MessagePassing):  # type: ignore[misc]
        def __init__(self, edge: Any, node: Any) -> None:
            super().__init__(aggr="add")
            self.edge, self.node = edge, node

        def forward(self, h: Any, source: Any, scale: Any, edge_index: Any, edge_attr: Any) -> Any:
            z = self.propagate(edge_index, edge_attr=edge_attr, size=(len(h), len(h)))
            return self.node(torch.cat([h, source, scale * z], dim=1))

        def message(self, edge_attr: Any) -> Any:
            return self.edge(edge_attr)

    return Layer


def _mlp(ours: Any) -> Any:
    from torch import nn

    first, *others = (nn.Linear(*reversed(layer.weight.shape)) for layer in ours.layers)
    return nn.Sequential(first, *(part for layer in others for part in (nn.ReLU(), layer)))


def _repeat_batches(batches: Iterable[Any]) -> Iterator[Any]:
    while True:
        yield from batches
