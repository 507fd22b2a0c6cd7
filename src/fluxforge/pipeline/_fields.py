"""Fields of network, formula and the law of the data on a mesh that the network has not seen, side by side."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from fluxforge import recipe
from fluxforge._types import CellField, State
from fluxforge.data._ensemble import evaluation_meshes
from fluxforge.data._problem import Problem, exact_step
from fluxforge.data._source import source
from fluxforge.errors import FluxforgeError, InputError, InstabilityError
from fluxforge.gnn._network import Network, cast
from fluxforge.graph._stages import evaluate_stages
from fluxforge.loss._loss import step_of
from fluxforge.mesh._mesh import Mesh
from fluxforge.pipeline._problems import evaluation_problems
from fluxforge.run._folder import RunFolder
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._picture import comparison_figure
from fluxforge.train._optimise import optimiser
from fluxforge.train._step import begin

# Evaluation meshes are regular and irregular in turn: the first irregular one is drawn.
DRAWN = 1
Step = Callable[[Problem], State]


def fields_figure(scheme: Scheme, spec: recipe.Recipe, folder: RunFolder, member: int | None) -> Figure | None:
    """Fields after the rollout of the recipe's evaluation, on one colour scale, and their differences.

    The network is that member of the last checkpoint. One that cannot be read, and a field that is not finite any more,
    is left out. None where fewer than two fields are left: a picture is no reason to lose a discovery.
    """
    if not spec.evaluation.meshes:
        return None
    try:
        mesh, fields = _roll_out(scheme, read_member(spec, folder, member), spec)
    except (InputError, InstabilityError):
        return None
    fields = {name: values for name, values in fields.items() if np.isfinite(values).all()}
    if len(fields) < 2:
        return None
    return comparison_figure(mesh, fields, [*combinations(fields, 2)], unknown=scheme.equation.unknown)


def read_member(spec: recipe.Recipe, folder: RunFolder, member: int | None) -> Network | None:
    """A trained network from the last checkpoint of a run; None if none can be read.

    The second phase of a recipe with `training.polish` is not in checkpoints: then there is none either.
    """
    if spec.training.polish is not None:
        return None
    with jax.enable_x64(spec.training.precision == "float64"):
        state = begin(spec, optimiser(spec.training), source(spec))
        try:
            found = folder.checkpoints.latest(state, fingerprint=recipe.fingerprint(spec))
        except FluxforgeError:
            return None
    if found is None:
        return None
    network: Network = jax.tree.map(lambda leaf: leaf[member or 0] if eqx.is_array(leaf) else leaf, found[1].network)
    return network


def _roll_out(scheme: Scheme, network: Network | None, spec: recipe.Recipe) -> tuple[Mesh, dict[str, CellField]]:
    """A mesh of the evaluation, and the fields on it by name, each after as many steps of its own.

    The reference is the law of the data. Problems are those of the evaluation, whose compiled code is used again.
    """
    wanted = spec.evaluation
    k = min(DRAWN, wanted.meshes - 1)
    mesh = evaluation_meshes(wanted, spec.seed)[k]
    with jax.enable_x64(True):
        problem: Problem = jax.tree.map(lambda leaf: leaf[k], evaluation_problems(spec))
        steps: dict[str, Step] = {} if network is None else {"network": step_of(cast(network, "float64"))}
        steps["formula"] = lambda p: evaluate_stages(scheme.stages, p.graph, p.T, p.S, parameters=p.step_parameters)
        steps["reference"] = lambda p: exact_step(p, p.T)
        fields = {name: _repeat(step, problem, wanted.rollout) for name, step in steps.items()}
    return mesh, {name: values[: len(mesh.cells)] for name, values in fields.items()}


def _repeat(step: Step, problem: Problem, count: int) -> CellField:
    """The state after so many steps; padded cells stay at zero."""

    @eqx.filter_jit
    def run(problem: Problem) -> jax.Array:
        def once(_: Any, T: jax.Array) -> jax.Array:
            after = jnp.asarray(step(eqx.tree_at(lambda p: p.T, problem, T)))
            return jnp.where(problem.graph.live, after, 0.0)

        last: jax.Array = jax.lax.fori_loop(0, count, once, problem.T)
        return last

    return np.asarray(run(problem))
