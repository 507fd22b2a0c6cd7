"""Networks in the form of a flux: a time integrator in which only coefficients of faces are learned.

The stages are those of `fluxforge.scheme.weighted_stages`. The coefficient of each stage after the first is 1 + f(x)
with f a small MLP of dimensionless numbers x of a face, symmetric in its two cells. Before training f is 0, and the
network is the integrator. With `order` 2 the coefficient is 1 + total/(1 + total) f(x), total = Fo_P + Fo_N: the term
that f adds to the step is then of third order in Δt, and the step of second order, whatever f is. There the input
log(total) is replaced by log(total + 1/100), so that f stays bounded as Δt goes to 0.
"""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import sympy as sp
from jaxtyping import Array, Float, PRNGKeyArray

from fluxforge._types import State
from fluxforge.errors import InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._build import build
from fluxforge.gnn._network import MLP, AbstractNetwork, slot_values
from fluxforge.graph._padded_graph import Nodes, PaddedGraph, Quantities
from fluxforge.graph._stages import AbstractRound, Formulas
from fluxforge.pde._equation import Equation
from fluxforge.recipe._recipe import Network as NetworkSpec
from fluxforge.scheme._scheme import Ghost, Hop, Stage
from fluxforge.scheme._tableau import Tableau, rkl2_tableau
from fluxforge.scheme._weighted import face_invariants, nested_rkl2, nested_tableau, refuse_flux_form, weighted_stages

# Added to `total` inside the logarithm, which then has a limit as Δt goes to 0.
_LEAST_TOTAL = sp.Rational(1, 100)


def coefficient_inputs(equation: Equation, order: int) -> tuple[sp.Expr, ...]:
    """The inputs of the coefficients, as formulas of a message: log(Fo_P + Fo_N), and the other numbers of the face."""
    numbers = face_invariants(equation)
    return (log_of_total(numbers.pop("total"), order), *numbers.values())


def log_of_total(total: sp.Expr, order: int) -> sp.Expr:
    """The first input of the coefficients: log(total), or for `order` 2 a logarithm with a limit as Δt goes to 0."""
    return sp.log(total + _LEAST_TOTAL) if order == 2 else sp.log(total)


def coefficient_symbol(tag: str) -> sp.Symbol:
    """The symbol that stands for the coefficient of a stage in its message."""
    return symbol(f"c{tag}")


def learned_part(total: sp.Expr, order: int) -> sp.Expr:
    """The factor of f: 1, or for `order` 2 a number between 0 and 1 that vanishes with Δt."""
    return total / (1 + total) if order == 2 else sp.S.One


class WeightedRound(eqx.Module):
    """One stage whose message contains a coefficient 1 + scale · f of every face; f is a function of `inputs`."""

    f: MLP
    stage: Stage = eqx.field(static=True)
    coefficient: sp.Symbol = eqx.field(static=True)
    inputs: tuple[sp.Expr, ...] = eqx.field(static=True)
    scale: sp.Expr = eqx.field(static=True, default=sp.S.One)

    @property
    def ghosts(self) -> Mapping[str, Ghost]:
        """The rules of the stage's outputs."""
        return Formulas(self.stage).ghosts

    def coefficients(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> Float[Array, "cells slots"]:
        """1 + scale · f in every slot, and 1 in unused slots."""
        hop = graph.hops[Hop.EDGE]
        values = slot_values((*self.inputs, self.scale), hop, nodes, parameters)
        # Formulas may be infinite or NaN in unused slots. One `where` on the result would keep that out of the values,
        # but not out of the gradients, so the inputs are replaced too.
        seen = [jnp.broadcast_to(evaluate(each, values, jnp), hop.mask.shape) for each in self.inputs]
        table = jnp.stack([jnp.where(hop.mask & jnp.isfinite(each), each, 0.0).ravel() for each in seen], axis=-1)
        learned = self.f(table.astype(graph.V.dtype)).reshape(hop.mask.shape)
        if self.scale != 1:
            scale = jnp.broadcast_to(evaluate(self.scale, values, jnp), hop.mask.shape)
            learned = learned * jnp.where(hop.mask & jnp.isfinite(scale), scale, 0.0)
        return 1.0 + jnp.where(hop.mask, learned, 0.0)

    def sums(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> dict[str, State]:
        """The sums of the stage, with the coefficients in its messages."""
        coefficients = self.coefficients(graph, nodes, parameters)
        return Formulas(self.stage).sums(graph, nodes, {**parameters, self.coefficient.name: coefficients})

    def outputs(self, graph: PaddedGraph, cell: Quantities) -> dict[str, State]:
        """The stage's outputs."""
        return Formulas(self.stage).outputs(graph, cell)


class FluxNetwork(AbstractNetwork):
    """A time integrator with learned coefficients of faces; `weighted` are the stages after the first.

    If it is `free`, a coefficient multiplies the whole flux of every stage, and `weighted` are all stages: an ablation.
    """

    weighted: tuple[WeightedRound, ...]
    first: tuple[Stage, ...] = eqx.field(static=True)
    tableau: Tableau = eqx.field(static=True)
    equation: Equation = eqx.field(static=True)
    order: int = eqx.field(static=True, default=1)
    free: bool = eqx.field(static=True, default=False)

    @property
    def rounds(self) -> tuple[AbstractRound, ...]:
        """The local numbers, the first stage, and the weighted ones."""
        return (*(Formulas(stage) for stage in self.first), *self.weighted)

    @property
    def hops(self) -> frozenset[Hop]:
        """Messages go over edges."""
        return frozenset({Hop.EDGE})


def build_flux_network(
    tableau: Tableau,
    equation: Equation,
    key: PRNGKeyArray,
    *,
    depth: int,
    width: int,
    order: int = 1,
    free: bool = False,
) -> FluxNetwork:
    """A network with random weights, except for zeros in the last layer of its MLPs: it starts as the integrator.

    With `order` 2 it stays of second order in time, as the tableau has to be. Raises InputError for an equation whose
    flux is not linear, or whose parameters have no units.
    """
    if (why := refuse_flux_form(equation)) is not None:
        raise InputError(f"network.form: {why}")
    stages = weighted_stages(tableau, equation, coefficient_symbol, free=free)
    alone = 1 if free else 2
    first, later = stages[:alone], stages[alone:]
    inputs = coefficient_inputs(equation, order)
    scale = learned_part(face_invariants(equation)["total"], order)
    keys = jax.random.split(key, max(len(later), 1))
    coefficients = [coefficient_symbol(str(number)) for number in range(1, len(tableau.rows) + 1)]
    rounds = []
    for stage, stage_key in zip(later, keys, strict=False):
        (message,) = stage.messages.values()
        coefficient = next(each for each in coefficients if each in message.expression.free_symbols)
        rounds.append(
            WeightedRound(_start_mlp(len(inputs), depth, width, stage_key), stage, coefficient, inputs, scale)
        )
    return FluxNetwork(tuple(rounds), first, tableau, equation, order, free)


def _start_mlp(inputs: int, depth: int, width: int, key: PRNGKeyArray) -> MLP:
    start = MLP(MLP.create(inputs, 1, depth=depth, width=width, key=key, gain=3.0**0.5).layers, "gelu")
    last = start.layers[-1]
    silent = (jnp.zeros_like(last.weight), jnp.zeros_like(last.bias))
    return eqx.tree_at(lambda mlp: (mlp.layers[-1].weight, mlp.layers[-1].bias), start, silent)


def build_network(spec: NetworkSpec, key: PRNGKeyArray, equation: Equation) -> AbstractNetwork:
    """The network of a recipe with random weights, of layers (`free`) or in the form of a flux."""
    if spec.form == "free":
        return build(spec, key, equation)
    tableaux = {"nested": nested_tableau, "rkl2": rkl2_tableau, "rkl2-nested": nested_rkl2}
    tableau = tableaux[spec.integrator](spec.layers)
    sizes = {"depth": spec.depth, "width": spec.width}
    return build_flux_network(tableau, equation, key, **sizes, order=spec.order, free=spec.free_last)
