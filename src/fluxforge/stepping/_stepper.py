"""Steppers T' = step(T) of schemes on graphs: the interface, orders of cells, and steppers of general schemes."""

import abc
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fluxforge._arguments import describe_value
from fluxforge._types import Precision, State
from fluxforge.errors import InputError
from fluxforge.graph._neighbourhoods import check_dimension
from fluxforge.graph._pad import pad_graph
from fluxforge.graph._padded_graph import PaddedGraph, outflow_rule, put
from fluxforge.graph._stages import Formulas, evaluate_stages, fixed_sums
from fluxforge.mesh._boundary import Value
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._hops import has_lines
from fluxforge.mesh._parameters import Settings, resolve
from fluxforge.mesh._walls import close_walls
from fluxforge.pde._equation import Equation
from fluxforge.scheme._document import bounded_scheme
from fluxforge.scheme._scheme import Hop, Scheme


class AbstractStepper(eqx.Module):
    """Takes one time step, or many.

    `advance` works on cells in an order of its own, which keeps neighbours close in memory; `enter` and `leave` convert
    a field to that order and back. Calling the stepper does all three. `engine` is the name of the compiler of the
    steps.
    """

    engine: ClassVar[str] = "XLA"

    @abc.abstractmethod
    def advance(self, T: State) -> State:
        """One step, in the stepper's own order of cells."""

    @abc.abstractmethod
    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """A field from the mesh's order to the stepper's."""

    @abc.abstractmethod
    def leave(self, T: State) -> State:
        """A field from the stepper's order to the mesh's."""

    def repeat(self, T: State, steps: int) -> State:
        """The field after `steps` steps, in the stepper's own order; one by one, unless a stepper has a faster way."""
        for _ in range(steps):
            T = self.advance(T)
        return T

    def bytes_per_cell(self, cells: int) -> float | None:
        """Memory traffic of a step in bytes per cell: every coefficient and index is read once, each field once by each
        stage that uses it, and each output is written once.

        None if that is not known, as for implicit schemes, whose iterations read them several times. The kernel on the
        host holds several steps in the cache and moves fewer bytes from memory.
        """
        return None

    def __call__(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """One step of a field in the mesh's order."""
        return self.rollout(T, 1)

    def rollout(self, T: Float[Array | np.ndarray, " cells"], steps: int) -> State:
        """The field after that many steps, in the mesh's order."""
        return self.leave(self.repeat(self.enter(T), steps))


class AbstractMethod(abc.ABC):
    """A time-stepping method that is not a Scheme, such as a trained network, for `simulate`."""

    name: str
    equation: Equation
    implicit: ClassVar[bool] = False

    @abc.abstractmethod
    def stepper(
        self,
        graph: DualGraph,
        dt: float,
        *,
        source: Value | np.ndarray = 0.0,
        parameters: Settings | None = None,
        dtype: Precision = "float64",
    ) -> AbstractStepper:
        """The method on a graph with the time step `dt`."""

    @abc.abstractmethod
    def check_settings(self, parameters: Settings) -> Settings:
        """All parameters of the equation, given those of the user; raises InputError for values it cannot take."""

    @abc.abstractmethod
    def range_notes(self, fourier: float) -> tuple[str, ...]:
        """Warnings about a time step, given in reference steps, that lies outside the method's range."""


# The host of a GPU decides after every pass of a loop whether there is another: with one step per pass, a step of 10⁶
# cells takes 40 µs on an H200, with eight 18 µs. On a CPU there is nothing to gain, and more to compile.
STEPS_PER_TURN = 8


@eqx.filter_jit
def repeat_steps(step: AbstractStepper, T: State, steps: Int[Array, ""], *, turn: int | None = None) -> State:
    """`advance` applied `steps` times, `turn` times in each pass of a loop; one compilation serves every `steps`."""
    turn = turn or (1 if jax.default_backend() == "cpu" else STEPS_PER_TURN)

    def advance(_: Any, T: State) -> State:
        return step.advance(T)

    def advance_turn(_: Any, T: State) -> State:
        for _ in range(turn):
            T = step.advance(T)
        return T

    if turn == 1:
        return jax.lax.fori_loop(0, steps, advance, T)
    return jax.lax.fori_loop(0, steps % turn, advance, jax.lax.fori_loop(0, steps // turn, advance_turn, T))


@eqx.filter_jit
def take_step(step: AbstractStepper, T: State) -> State:
    """One `advance` without a loop, through which JAX could not differentiate backwards."""
    return step.advance(T)


class Order(eqx.Module):
    """A renumbering of the cells and its inverse."""

    forward: Int[Array, " cells"]
    back: Int[Array, " cells"]

    @staticmethod
    def of(order: Int[np.ndarray, " cells"] | None) -> "Order | None":
        """An order of the cells with its inverse; None for None, the mesh's own order."""
        if order is None:
            return None
        return Order(put(order, np.int32), put(invert_order(order), np.int32))


def invert_order(order: Int[np.ndarray, " cells"]) -> Int[np.ndarray, " cells"]:
    """The new place of each cell."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place


def check_size(T: Any, cells: int) -> None:
    """Raise InputError unless T has one value per cell: JAX takes some value for an index that is out of bounds."""
    if np.shape(T) != (cells,):
        raise InputError(f"T should be {cells} numbers, one per cell, got {describe_value(T)}")


class DeviceStepper(AbstractStepper):
    """Steps on the device; `order` is the stepper's order of cells, None for the mesh's own."""

    order: Order | None = eqx.field(default=None, kw_only=True)
    dtype: Precision = eqx.field(static=True, default="float64", kw_only=True)

    @abc.abstractmethod
    def count_cells(self) -> int:
        """The number of cells that a field has."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.count_cells():,} cells, {self.dtype}>"

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """A field from the mesh's order to the stepper's; raises InputError for one of another size."""
        check_size(T, self.count_cells())
        field = put(T, self.dtype) if isinstance(T, np.ndarray) else jnp.asarray(T, self.dtype)
        return field if self.order is None else field[self.order.forward]

    def leave(self, T: State) -> State:
        """A field from the stepper's order to the mesh's."""
        return T if self.order is None else T[self.order.back]

    def __call__(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """One step of a field in the mesh's order."""
        return self.leave(take_step(self, self.enter(T)))

    def repeat(self, T: State, steps: int) -> State:
        """Many steps without leaving the device."""
        return repeat_steps(self, T, jnp.asarray(steps))


_BITS = 16


def local_order(graph: DualGraph) -> Int[np.ndarray, " cells"] | None:
    """The cells along Hilbert's curve (in space, Morton's); None if the mesh is small or its own order is local."""
    if graph.cells < 4096:
        return None
    return None if _is_banded(graph) else (hilbert_order if graph.dimension == 2 else morton_order)(graph.x)


def _is_banded(graph: DualGraph) -> bool:
    """Whether the mesh's own order is that of bands: 99 % of neighbours are a bounded distance apart in it."""
    inside = slice(graph.interior)
    reach = np.abs(graph.owner[inside].astype(np.int64) - graph.neighbour[inside])
    return not reach.size or bool(np.quantile(reach, 0.99) <= 16 * graph.cells ** (1 - 1 / graph.dimension))


def hilbert_order(x: Float[np.ndarray, "cells 2"]) -> Int[np.ndarray, " cells"]:
    """The order in which a Hilbert curve of 2¹⁶ × 2¹⁶ boxes visits the points."""
    u, v = _find_boxes(x).T.copy()
    distance = np.zeros(len(x), np.int64)
    for bit in reversed(range(_BITS)):
        side = 1 << bit
        right, up = (u & side) > 0, (v & side) > 0
        distance += np.where(right, 3, 0) * side * side
        distance += np.where(up, np.where(right, -1, 1), 0) * side * side
        # Rotate the quadrant so that the curve enters and leaves it where the curves of its neighbours do.
        flip = ~up & right
        u, v = (
            np.where(flip, side - 1 - (u & (side - 1)), u & (side - 1)),
            np.where(flip, side - 1 - (v & (side - 1)), v & (side - 1)),
        )
        u, v = np.where(~up, v, u), np.where(~up, u, v)
    return np.argsort(distance, kind="stable")


def morton_order(x: Float[np.ndarray, "cells dimension"]) -> Int[np.ndarray, " cells"]:
    """The order of the points by the interleaved bits of their coordinates, in any dimension."""
    d, box = x.shape[1], _find_boxes(x)
    key = np.zeros(len(x), np.int64)
    for bit in range(_BITS):
        for axis in range(d):
            key |= ((box[:, axis] >> bit) & 1) << (d * bit + axis)
    return np.argsort(key, kind="stable")


def _find_boxes(x: Float[np.ndarray, "cells dimension"]) -> Int[np.ndarray, "cells dimension"]:
    """The box of each point among 2¹⁶ along the longest side of the mesh."""
    low, span = x.min(axis=0), np.ptp(x, axis=0).max()
    return ((x - low) / (span or 1.0) * ((1 << _BITS) - 1)).astype(np.int64)


# With arrays of its own for every slot, a step of 10⁶ squares takes a fraction of the time, but longer to compile.
LEAST_CELLS_BY_SLOT = 1 << 14


class GeneralStepper(DeviceStepper):
    """Evaluates every message in every slot at every step; on large meshes, sums without fields (`fixed`) only once."""

    scheme: Scheme = eqx.field(static=True)
    # Arrays, and not static: one compilation serves all time steps and values of the parameters.
    dt: Float[Array, ""]
    constants: dict[str, Float[Array, ""]]
    S: State
    graph: PaddedGraph
    fixed: tuple[dict[str, State], ...]

    def count_cells(self) -> int:
        """The number of cells that a field has."""
        return len(self.S)

    @eqx.filter_jit
    def advance(self, T: State) -> State:
        """One step: the messages, sums and outputs of every stage."""
        parameters = {"dt": self.dt, **self.constants}
        rounds = (Formulas(stage, known) for stage, known in zip(self.scheme.stages, self.fixed, strict=True))
        return evaluate_stages(rounds, self.graph, T, self.S, parameters=parameters)


def general_stepper(
    scheme: Scheme,
    graph: DualGraph,
    *,
    dt: float,
    parameters: Settings | None,
    source: Float[np.ndarray, " cells"],
    dtype: Literal["float32", "float64"],
) -> GeneralStepper:
    """The stepper of any explicit scheme, with the graph's neighbourhoods on the device."""
    check_dimension(scheme, graph)
    fields = resolve(scheme.equation, graph, parameters)
    by_slot = graph.cells >= LEAST_CELLS_BY_SLOT
    padded = pad_graph(
        close_walls(graph, scheme.equation, fields),
        scheme.hops(),
        parameters=fields,
        symbols=scheme.symbols_in_messages(),
        outflow=outflow_rule(graph, scheme.equation, fields, dtype),
        dtype=dtype,
        by_slot=by_slot,
    )
    return GeneralStepper(
        scheme=scheme,
        dt=put(np.asarray(dt), dtype),
        constants={name: put(np.asarray(value), dtype) for name, value in fields.constants.items()},
        dtype=dtype,
        S=put(source, dtype),
        graph=padded,
        fixed=fixed_sums(scheme.stages, padded, fields.constants) if by_slot else ({},) * len(scheme.stages),
    )


class HostStepper(AbstractStepper):
    """Steps on the host, in the mesh's order of cells and in float64.

    `constant` is the part of a step due to sources and walls.
    """

    constant: Float[np.ndarray, " cells"]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {len(self.constant):,} cells>"

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """A copy of the field in float64, in the mesh's order of cells.

        Raises InputError for a field of another size, and for one that JAX traces.
        """
        check_size(T, len(self.constant))
        if isinstance(T, jax.core.Tracer):
            raise InputError(
                "JAX cannot trace (differentiate, compile or batch) the steps of this solver, which run outside of "
                "JAX: use solver='cg'"
            )
        return np.array(T, float)

    def leave(self, T: State) -> State:
        """The field itself; the order of the cells is the mesh's."""
        return T


def scheme_for_cells(scheme: Scheme, graph: DualGraph) -> Scheme:
    """The scheme or, if it needs lines of cells that the mesh does not have, the same limiter for cells of any shape.

    A scheme with formulas of its own along lines is returned unchanged; it is refused when its neighbourhoods are
    built.
    """
    if Hop.LINE not in scheme.hops() or has_lines(graph):
        return scheme
    return bounded_scheme(scheme, graph.dimension) or scheme
