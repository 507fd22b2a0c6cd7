"""Networks that fit a training set and violate the printed theorems, with their errors.

| network | fits the readings | missing hypothesis of the print |
| --- | --- | --- |
| opposite biases, linear | all without faces | that each bias is small, not their sum alone |
| memorising, padded to N_sparse non-zeros | all without faces | that N_sparse is a minimum |
| saturated, padded to N_sparse non-zeros | all | that N_sparse non-zeros mean the lemma's structure |
| one-sided, the lemma's structure | corners, positive | that something drives the update negative |
| late, the lemma's count and no biases | corners, negated, positive | that the first layer does the work |

Each function takes the problems on which errors are measured, and the training sets of `draw_readings`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from fluxforge import recipe
from fluxforge.certify.bounds._errors import BoundCheck, Counterexample, largest_error
from fluxforge.certify.bounds._theorems import check_deep_bound, check_linear_bound
from fluxforge.data._model import PLAIN_HEAT
from fluxforge.data._pairs import CORNER_CASES, EQUILATERAL, pair, two_cells
from fluxforge.data._problem import Parameters, Problem, problem
from fluxforge.gnn._network import Network
from fluxforge.gnn.exact import (
    LinearWeights,
    biased_network,
    late_network,
    linear_network,
    linear_weights,
    memorising_network,
    needed_bound,
    nonzeros,
    one_sided_network,
    sparse_count,
)
from fluxforge.graph._pad import pad_graph, stack_graphs
from fluxforge.graph._padded_graph import PaddedGraph
from fluxforge.mesh._build import dual
from fluxforge.mesh._conditions import Conditions
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import fourier_step
from fluxforge.scheme._scheme import Ghost

READINGS = ("corners", "negated", "positive", "signed", "faces")


def problems_on(graph: DualGraph, key: PRNGKeyArray, *, count: int, dt: float, diffusivity: float = 1.0) -> Problem:
    """`count` problems on one graph: random T, S and g at Dirichlet faces, Neumann data of the graph."""
    return _pose(pad_graph(graph), jax.random.split(key, count), jnp.asarray(dt), {"alpha": jnp.asarray(diffusivity)})


@eqx.filter_jit
def _pose(graph: PaddedGraph, keys: Key[Array, " problems"], dt: Float[Array, ""], parameters: Parameters) -> Problem:
    cells, shown = len(graph.V), graph.shown[Ghost.DIRICHLET]
    held = (shown.scale == 0) & (jnp.arange(len(shown.scale)) >= cells)

    def one(key: PRNGKeyArray) -> Problem:
        fields_key, walls_key = jax.random.split(key)
        T, S = jnp.where(graph.live[None, :], _draw(fields_key, (2, cells)), 0.0)
        g = jnp.where(held, _draw(walls_key, held.shape), shown.constant)
        return problem(graph.with_boundary(g), T, S, dt=dt, parameters=parameters)

    return jax.vmap(one)(keys)


def _draw(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Uniform in [−1, 1] half of the time, −1 or 1 otherwise: errors are largest at the ends."""
    kind_key, values_key = jax.random.split(key)
    values = jax.random.uniform(values_key, shape, minval=-1.0, maxval=1.0)
    return jnp.where(jax.random.bernoulli(kind_key), values, jnp.sign(values))


def enlarge_mesh(mesh: Mesh, *, dt: float, volume: float, boundary: Conditions = None) -> DualGraph:
    """The dual graph of the mesh, enlarged until every V ≥ `volume` and Δt meets the Fourier condition.

    In the plane, both V and the Fourier step grow with the square of lengths.
    """
    graph = dual(mesh, boundary)
    factor = max(volume / graph.V.min(), dt / fourier_step(graph))
    return dual(replace(mesh, points=mesh.points * np.sqrt(factor * (1.0 + 1e-12))), boundary)


def roomy_problems(
    meshes: Mapping[str, Mesh], key: PRNGKeyArray, *, count: int, dt: float, volume: float = 3.0**0.5
) -> dict[str, Problem]:
    """Problems on each mesh, enlarged to meet the conditions that theorems put on volumes and steps.

    All graphs are padded to one size, so that compiled code is shared.
    """
    together = stack_graphs([pad_graph(enlarge_mesh(mesh, dt=dt, volume=volume)) for mesh in meshes.values()])
    keys = jax.random.split(key, (len(meshes), count))
    return {
        name: _pose(
            jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], together),
            keys[k],
            jnp.asarray(dt),
            {"alpha": jnp.asarray(1.0)},
        )
        for k, name in enumerate(meshes)
    }


def draw_readings(key: PRNGKeyArray, *, dt: float = 0.1, graphs: int = 100) -> dict[str, Problem]:
    """The possible readings of the paper's training set, from the weakest to the strongest.

    - `corners`: the corner cases alone;
    - `negated`: those and their negatives;
    - `positive`: those, and samples of T and S divided by T_train, hence in [0, 1];
    - `signed`: those, their negatives, and samples in [−1, 1];
    - `faces`: the same, with Dirichlet faces present or not, and a pair at 0 with all its faces at 0.
    """
    readings = _readings(key, float(dt), graphs)
    return {name: readings[name] for name in READINGS}


@eqx.filter_jit
def _readings(key: PRNGKeyArray, dt: float, graphs: int) -> dict[str, Problem]:
    signed = two_cells(recipe.TwoCells(graphs=graphs, time_step=dt, negated=True), key)
    with_faces = two_cells(recipe.TwoCells(graphs=graphs, time_step=dt, negated=True, faces="random"), key)
    corners = _select(signed, slice(graphs, graphs + len(CORNER_CASES)))
    return {
        "corners": corners,
        "negated": _select(signed, slice(graphs, None)),
        "positive": _join(_take_moduli(_select(signed, slice(graphs))), corners),
        "signed": signed,
        "faces": _join(with_faces, zero_pair(dt)),
    }


def zero_pair(dt: float) -> Problem:
    """The corner case that the linear theorem lacks: T = S = 0, and g = 0 on all four outer faces, as a batch of one.

    Each cell then sums three messages: |Δt/V W₂ b_agg + b_u| ≤ ε and |3 Δt/V W₂ b_agg + b_u| ≤ ε bound both biases.
    """
    nothing = jnp.zeros((2, 2))
    graph = pair(jnp.asarray(EQUILATERAL, nothing.dtype), present=nothing == 0, value=nothing, faces=True)
    single = problem(graph, nothing[0], nothing[0], dt=jnp.asarray(dt), parameters=PLAIN_HEAT.put_on(graph)[1])
    return jax.tree.map(lambda leaf: leaf[None], single)


def _take_moduli(problems: Problem) -> Problem:
    """The same problems with |T| and |S|."""
    T, S = jnp.abs(problems.T), jnp.abs(problems.S)

    def one(p: Problem, T: Float[Array, " cells"], S: Float[Array, " cells"]) -> Problem:
        return problem(p.graph, T, S, dt=p.dt, parameters=p.parameters)

    return jax.vmap(one)(problems, T, S)


def _select(problems: Problem, which: slice) -> Problem:
    return jax.tree.map(lambda leaf: leaf[which], problems)


def _join(first: Problem, second: Problem) -> Problem:
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first, second)


# The training pair: V = √3, A/δ = √3 to the other cell and 2√3 to a face.
VOLUME = 3.0**0.5
LAYERS, DEPTH, WIDTH = 2, 2, 8


def offset_counterexample(
    problems: Mapping[str, Problem], training: Mapping[str, Problem], *, size: float = 1.0
) -> Counterexample:
    """b_agg = `size` and b_u = −Δt/√3 b_agg: no error where every cell has one neighbour and Δt/V is the same."""
    network = linear_network(LinearWeights(message_bias=size, bias=-_training_step(training) / VOLUME * size))
    claim = "a linear network with a training error of at most ε errs by at most ε (4 + 4/Δt + N)"
    return _measure("opposite biases", claim, network, problems, training=training, fits="signed")


def memorised_counterexample(problems: Mapping[str, Problem], training: Mapping[str, Problem]) -> Counterexample:
    """`memorising_network` with idle parameters added up to N_sparse: its loss is η N_sparse, the claimed minimum."""
    dt = _training_step(training)
    network = memorising_network(
        LAYERS,
        DEPTH,
        WIDTH,
        bound=needed_bound(1.0, dt, weight=VOLUME, fourier=dt),
        ratio=dt / VOLUME,
        nonzeros=sparse_count(LAYERS, DEPTH),
    )
    claim = "N_sparse non-zeros and a training error of at most ε give an error of at most 2ε (1 + 2/Δt)"
    return _measure("memorising", claim, network, problems, training=training, fits="signed")


def saturated_counterexample(problems: Mapping[str, Problem], training: Mapping[str, Problem]) -> Counterexample:
    """`biased_network` with the smallest B that fits the training set: wrong where a flux exceeds all in training.

    It fits the strongest reading, faces included, and has N_sparse non-zeros, four of them idle.
    """
    dt = _training_step(training)
    bound = needed_bound(1.0, dt, weight=2.0 * VOLUME, fourier=5.0 * dt)
    network = biased_network(LAYERS, DEPTH, WIDTH, bound, nonzeros=sparse_count(LAYERS, DEPTH))
    claim = "N_sparse non-zeros and a training error of at most ε give an error of at most 2ε (1 + 2/Δt)"
    return _measure("saturated", claim, network, problems, training=training, fits="faces")


def one_sided_counterexample(problems: Mapping[str, Problem], training: Mapping[str, Problem]) -> Counterexample:
    """T' = −F where F < 0, which occurs neither in the corner cases nor in samples in [0, 1]."""
    network = one_sided_network(LAYERS, DEPTH, WIDTH, slope=-1.0)
    claim = "“by symmetry, the same inequalities hold for x < 0”"
    return _measure("one-sided", claim, network, problems, training=training, fits="positive")


def late_counterexample(problems: Mapping[str, Problem], training: Mapping[str, Problem]) -> Counterexample:
    """`late_network`, wrong where exchange or source change the sign of T, as no corner case nor its negative does."""
    network = late_network(LAYERS, DEPTH, WIDTH, share=0.5)
    claim = "“it is easy to see that we need the first layer to implement F”, and the rest to hand it on"
    return _measure("late", claim, network, problems, training=training, fits="negated")


def _measure(
    name: str,
    claim: str,
    network: Network,
    problems: Mapping[str, Problem],
    *,
    training: Mapping[str, Problem],
    fits: str,
) -> Counterexample:
    check: Callable[[Network, Problem, Mapping[str, Problem]], BoundCheck] = (
        check_linear_bound if linear_weights(network) is not None else check_deep_bound
    )
    reached = {reading: largest_error(network, each) for reading, each in training.items()}
    outcome = check(network, training[fits], problems)
    return Counterexample(name, claim, network, nonzeros(network), reached, fits, outcome)


def _training_step(training: Mapping[str, Problem]) -> float:
    return float(training["corners"].dt[0])
