"""A scheme on a graph becomes a step:  T' = step(T)."""

import abc
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fluxforge._types import State
from fluxforge.graph import put
from fluxforge.stepping._rows import StageRows


class AbstractStepper(eqx.Module):
    """One time step, and many.

    `advance` works on cells in an order of its own, which keeps neighbours close in memory; `enter` and `leave`
    carry a field there and back. Calling the stepper does all three, so its caller never sees that order.
    """

    @abc.abstractmethod
    def advance(self, T: State) -> State:
        """One step, in the stepper's own order of cells."""

    @abc.abstractmethod
    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """A field from the mesh's order to the stepper's."""

    @abc.abstractmethod
    def leave(self, T: State) -> State:
        """A field from the stepper's order to the mesh's."""

    @abc.abstractmethod
    def repeat(self, T: State, steps: int) -> State:
        """Many steps, in the stepper's own order."""

    def __call__(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """One step of a field in the mesh's order."""
        return self.rollout(T, 1)

    def rollout(self, T: Float[Array | np.ndarray, " cells"], steps: int) -> State:
        """The field after that many steps, in the mesh's order."""
        return self.leave(self.repeat(self.enter(T), steps))


# The host of a GPU decides after every turn of a loop whether there is another: with one step a turn, a step of 10⁶
# cells takes 40 µs on an H200, with eight a turn 18 µs. On a CPU there is nothing to gain, and more to compile.
STEPS_PER_TURN = 8


@eqx.filter_jit
def repeated(step: AbstractStepper, T: State, steps: Int[Array, ""], *, turn: int | None = None) -> State:
    """`steps` times `advance`, `turn` of them in each turn of a loop; one compilation serves every number of steps."""
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


class Order(eqx.Module):
    """A renumbering of the cells and its inverse."""

    forward: Int[Array, " cells"]
    back: Int[Array, " cells"]

    @staticmethod
    def of(order: Int[np.ndarray, " cells"] | None) -> "Order | None":
        """Both directions of an order, or None for the mesh's own."""
        if order is None:
            return None
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return Order(put(order, np.int32), put(back, np.int32))


def entered(T: Float[Array | np.ndarray, " cells"], order: Order | None, dtype: str) -> State:
    """A field on the device, in the given order."""
    field = put(T, dtype) if isinstance(T, np.ndarray) else jnp.asarray(T, dtype)
    return field if order is None else field[order.forward]


def left(T: State, order: Order | None) -> State:
    """A field in the mesh's order again."""
    return T if order is None else T[order.back]


class LinearStepper(AbstractStepper):
    """An explicit linear scheme: everything but T was evaluated beforehand, a step is gathers and sums."""

    stages: tuple[StageRows, ...]
    order: Order | None
    always: Bool[Array, ""]
    dtype: Literal["float32", "float64"] = eqx.field(static=True)

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """A field from the mesh's order to the stepper's."""
        return entered(T, self.order, self.dtype)

    def leave(self, T: State) -> State:
        """A field from the stepper's order to the mesh's."""
        return left(T, self.order)

    def advance(self, T: State) -> State:
        """One step: the stages in turn."""
        fields = {"T": T}
        for stage in self.stages:
            fields |= self._staged(stage, fields)
        return fields["T_new"]

    def _staged(self, stage: StageRows, fields: dict[str, State]) -> dict[str, State]:
        """A stage by itself.

        The CPU's compiler would fuse it into the gathers of the next stage and work it out anew for every neighbour;
        it cannot where the stage is a branch whose condition is known only at run time.
        """

        def plain(held: dict[str, State]) -> dict[str, State]:
            return stage(held)

        def alone(held: dict[str, State]) -> dict[str, State]:
            return jax.lax.cond(self.always, plain, lambda held: dict.fromkeys(stage.terms, held["T"]), held)

        return jax.lax.platform_dependent(fields, cpu=alone, default=plain)

    def repeat(self, T: State, steps: int) -> State:
        """Many steps without leaving the device."""
        return repeated(self, T, jnp.asarray(steps))
