"""An equation with parameter values, and those values on the cells and faces of a graph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from fluxforge.expression._symbols import COORDINATES
from fluxforge.graph._padded_graph import PaddedGraph
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.pde._parameter import Parameter, Rank, Where
from fluxforge.recipe._equation import Value, equation_of, settings
from fluxforge.recipe._recipe import Recipe
from fluxforge.scheme._scheme import Ghost, Hop


@dataclass(frozen=True)
class Model:
    """An equation and the value of each of its parameters, the same everywhere; heat with α = 1 unless given."""

    equation: Equation = HEAT
    values: tuple[tuple[str, Value], ...] = tuple((p.name, p.default or 1.0) for p in HEAT.parameters)

    def put_on(
        self, graph: PaddedGraph, size: Any = None, jumps: Mapping[str, Float[Array, " cells"]] | None = None
    ) -> tuple[PaddedGraph, dict[str, Float[Array, ""]]]:
        """The graph with the parameters of its cells and faces, and those parameters that are one number, by name.

        With a `size`, the graph's cells of mean volume 1 have this length in the units of the parameters: lengths are
        divided by it and times by its square, which leaves a diffusivity unchanged. `jumps` are factors of parameters
        given per cell.
        """
        constants: dict[str, Array] = {}
        cells, slots = dict(graph.cells), dict[str, Array]()
        edge, dtype = graph.hops[Hop.EDGE], graph.V.dtype
        for name, value in self.values:
            p = self.equation.parameter(name)
            value = value if size is None else jnp.asarray(value, dtype) * _unit_factor(size, p)
            if p.rank is Rank.SCALAR and p.where is Where.CONSTANT:
                constants[name] = jnp.asarray(value, dtype)
                continue
            slots |= dict.fromkeys(p.edge_names(), _project_on_normals(p, value, edge.geometry))
            slots |= {each: _tangential_sizes(p, value, edge.geometry) for each in p.tangential_names}
            cells |= {each: jnp.broadcast_to(jnp.asarray(value, dtype), graph.V.shape) for each in p.cell_names}
            if jumps is not None and name in jumps:
                seen = graph.shown[str(Ghost.OWNER)].of(jumps[name])
                slots |= _vary_slots(p, slots, edge.at("P", seen), edge.at("N", seen))
                cells |= {each: cells[each] * jumps[name] for each in p.cell_names}
        if not slots:
            return graph, constants
        hops = {**graph.hops, str(Hop.EDGE): eqx.tree_at(lambda hop: hop.geometry, edge, {**edge.geometry, **slots})}
        return PaddedGraph(graph.V, graph.live, graph.shown, hops, cells), constants


PLAIN_HEAT = Model()


def heat(diffusivity: float = 1.0) -> Model:
    """The heat equation with this diffusivity."""
    return Model(HEAT, tuple(HEAT.settings(diffusivity=diffusivity).items()))


def model_of(spec: Recipe) -> Model:
    """The equation of a recipe with the values that its data are made with."""
    return Model(equation_of(spec), tuple(settings(spec).items()))


def _unit_factor(size: Any, p: Parameter) -> Any:
    """The factor of a parameter if lengths are divided by `size` and times by its square."""
    return 1.0 if p.unit is None else size ** -float(p.unit.length + 2 * p.unit.time)


def _vary_slots(p: Parameter, slots: Mapping[str, Array], here: Array, there: Array) -> dict[str, Array]:
    """Values in slots times a factor per cell: that of its end for a scalar, the harmonic mean of both for K n."""
    if p.in_cells:
        return {name: slots[name] * factor for name, factor in zip(p.edge_names(), (here, there), strict=True)}
    series = 2.0 * here * there / (here + there)
    return {name: slots[name] * series for name in (*p.edge_names(), *p.tangential_names)}


def _project_on_normals(p: Parameter, value: Any, geometry: Mapping[str, Array]) -> Array:
    """The value in every slot: a scalar itself, a·n for a vector, n·K n for a tensor."""
    n = _normals(geometry)
    constant = jnp.asarray(value, n.dtype)
    if p.rank is Rank.SCALAR:
        return jnp.broadcast_to(constant, n.shape[1:])
    along = jnp.tensordot(constant, n, axes=1)
    return along if p.rank is Rank.VECTOR else (n * along).sum(axis=0)


def _tangential_sizes(p: Parameter, value: Any, geometry: Mapping[str, Array]) -> Array:
    """|v − (v·n) n| in every slot, v being a vector or K n of a tensor."""
    n = _normals(geometry)
    constant = jnp.asarray(value, n.dtype)
    v = constant[:, None, None] if p.rank is Rank.VECTOR else jnp.tensordot(constant, n, axes=1)
    return jnp.linalg.norm(v - (v * n).sum(axis=0)[None] * n, axis=0)


def _normals(geometry: Mapping[str, Array]) -> Array:
    """The normals of all slots, components first."""
    return jnp.stack([geometry[f"n_{axis}"] for axis in COORDINATES if f"n_{axis}" in geometry])
