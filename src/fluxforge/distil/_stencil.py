"""Linear response of a step: its series in powers of ΔtL, stages with these powers, and its stencil as a power law."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.data._problem import Problem, linearise
from fluxforge.distil._objective import Free
from fluxforge.errors import DiscoveryError
from fluxforge.expression._symbols import symbol
from fluxforge.scheme._scheme import Ghost, Hop, Message, Output, Stage

Step = Callable[[Problem], State]


@dataclass(frozen=True)
class Series:
    """T' − T ≈ Σ p_k (ΔtL)^k T + Σ q_k (ΔtL)^k ΔtS, with k = 1 … L in the first sum and k = 0 … L − 1 in the second.

    `temperature` holds the p_k, `source` the q_k; `unexplained` is rms(error)/rms(T' − T).
    """

    temperature: tuple[float, ...]
    source: tuple[float, ...]
    unexplained: float

    @property
    def nested(self) -> dict[str, float]:
        """The same polynomials as constants aₖ, cₖ of L layers hₖ = T + aₖ Δt S + cₖ ΔtL hₖ₋₁, `a1`, `c1`, `a2`, …"""
        L = len(self.temperature)
        constants: dict[str, float] = {}
        for k in range(1, L + 1):
            # Layer k's factors: pᵢ = c_L c_{L−1} … over i factors, and qᵢ has one a at its end.
            deeper, shallower = self.temperature[L - k], 1.0 if k == L else self.temperature[L - k - 1]
            constants[f"a{k}"] = self.source[L - k] / shallower
            constants[f"c{k}"] = deeper / shallower
        return constants


def series(step: Step, problems: Problem, order: int) -> Series:
    """Fit a series with L = `order` by least squares over the live cells of all problems.

    The rows of each problem are divided by the root mean square of its T' − T.
    """
    rows, answers = _rows(step, order, problems)
    X, y = np.asarray(rows, float).reshape(-1, 2 * order), np.asarray(answers, float).ravel()
    coefficients = np.linalg.lstsq(X, y, rcond=None)[0]
    off = float(np.linalg.norm(y - X @ coefficients) / np.linalg.norm(y))
    return Series(tuple(map(float, coefficients[:order])), tuple(map(float, coefficients[order:])), off)


@eqx.filter_jit
def _rows(step: Step, order: int, problems: Problem) -> tuple[Array, Array]:
    """Matrix and right-hand side of all problems. A step that is a module is data: networks of one shape share code."""

    def one(p: Problem) -> tuple[Float[Array, "cells columns"], Float[Array, " cells"]]:
        live = p.graph.live
        y = jnp.where(live, step(p) - p.T, 0.0)
        X = jnp.where(live[:, None], jnp.stack(_columns(p, order), axis=1), 0.0)
        size = jnp.sqrt(jnp.square(y).sum() / live.sum())
        return X / size, y / size

    return jax.vmap(one)(problems)


def _columns(p: Problem, order: int) -> list[Array]:
    """ΔtLT, (ΔtL)²T, …, then ΔtS, ΔtLΔtS, …; boundary values enter the first only: the others apply L to rates."""

    def once(u: Array) -> Array:
        return p.dt * L(u)

    L = linearise(p.rate, p.T)
    of_T, of_S = [p.dt * (p.rate(p.T) - p.S)], [p.dt * p.S]
    for _ in range(order - 1):
        of_T.append(once(of_T[-1]))
        of_S.append(once(of_S[-1]))
    return [*of_T, *of_S]


GEOMETRY = ("A", "delta", "V", "dt")


@dataclass(frozen=True)
class PowerLaw:
    """∂T'_P/∂T_N = factor · A^a δ^b V^v Δt^t.

    `scatter` is the standard deviation of the logarithms from it, `wrong_signs` the share of entries left out because
    they are near zero or have the other sign.
    """

    factor: float
    exponents: dict[str, float]
    scatter: float
    wrong_signs: float


def stencil(step: Step, problems: Problem) -> Float[np.ndarray, " edges"]:
    """∂T'_P/∂T_N for every directed edge between two cells, problem after problem."""

    @jax.jit
    def all_of(problems: Problem) -> tuple[Array, Array]:
        return jax.vmap(lambda p: _edge_slopes(step, p))(problems)

    values, used = all_of(problems)
    return np.asarray(values, float)[np.asarray(used)]


def _edge_slopes(step: Step, p: Problem) -> tuple[Array, Array]:
    J = jax.jacfwd(lambda T: step(_with_state(p, T)))(p.T)
    edge = p.graph.hops["edge"]
    cells = len(p.graph.V)
    inner = edge.mask & (edge.ends["N"] < cells)
    return jnp.take_along_axis(J, jnp.where(inner, edge.ends["N"], 0), axis=1), inner


def _with_state(p: Problem, T: Float[Array, " cells"]) -> Problem:
    return eqx.tree_at(lambda q: q.T, p, T)


def geometry(problems: Problem) -> dict[str, Float[np.ndarray, " edges"]]:
    """A, δ, V (of the receiving cell) and Δt by name, for the edges of `stencil` and in their order."""
    edge = problems.graph.hops["edge"]
    cells = problems.graph.V.shape[1]
    inner = np.asarray(edge.mask & (edge.ends["N"] < cells))
    shape = inner.shape
    columns = {
        "A": edge.geometry["A"],
        "delta": edge.geometry["delta"],
        "V": jnp.broadcast_to(problems.graph.V[:, :, None], shape),
        "dt": jnp.broadcast_to(problems.dt[:, None, None], shape),
    }
    return {name: np.asarray(value, float)[inner] for name, value in columns.items()}


def power_law(values: Float[np.ndarray, " entries"], columns: Mapping[str, Float[np.ndarray, " entries"]]) -> PowerLaw:
    """Fit a power law by weighted least squares of logarithms; entries near zero or of the rarer sign are left out.

    Raises DiscoveryError if fewer entries than unknowns remain.
    """
    sign = -1.0 if len(values) and np.median(values) < 0 else 1.0
    right = sign * values > 1e-6 * np.abs(values).max(initial=0.0)
    if right.sum() <= len(columns):
        raise DiscoveryError(
            f"stage distil: the stencil is not a product of powers of {', '.join(columns)}: "
            f"{right.sum()} of its {len(values)} entries are not zero; train longer"
        )
    X = np.column_stack([np.ones(right.sum()), *(np.log(column[right]) for column in columns.values())])
    y = np.log(sign * values[right])
    # An absolute error is a smaller error of the logarithm where the entry is large.
    weight = np.minimum(values[right] / np.median(values[right]), 4.0)
    coefficients = np.linalg.lstsq(weight[:, None] * X, weight * y, rcond=None)[0]
    return PowerLaw(
        factor=float(sign * np.exp(coefficients[0])),
        exponents=dict(zip(columns, map(float, coefficients[1:]), strict=True)),
        scatter=float(np.sqrt(np.average((y - X @ coefficients) ** 2, weights=weight**2))),
        wrong_signs=float(1.0 - right.mean()),
    )


def far_stencil(step: Step, problems: Problem) -> tuple[Float[np.ndarray, " paths"], dict[str, np.ndarray]]:
    """∂T'_P/∂T_Q for pairs of cells joined by exactly one path, and the geometry of that path by name.

    Q is neither P nor a neighbour of P, so that the derivative is the effect of that path alone.
    """

    @jax.jit
    def all_of(problems: Problem) -> tuple[Array, Array]:
        return jax.lax.map(lambda p: _path_slopes(step, p), problems)

    values, used = (np.asarray(each) for each in all_of(problems))
    path, shape = problems.graph.hops["path"], used.shape
    V, middle = np.asarray(problems.graph.V, float), np.asarray(path.ends["N"])
    columns = {name: np.asarray(path.geometry[name], float) for name in ("A_PN", "delta_PN", "A_NQ", "delta_NQ")}
    columns |= {
        "V_P": np.broadcast_to(V[:, :, None], shape),
        "V_N": np.take_along_axis(V[:, :, None], np.minimum(middle, V.shape[1] - 1), axis=1),
        "dt": np.broadcast_to(np.asarray(problems.dt, float)[:, None, None], shape),
    }
    return values.astype(float)[used], {name: column[used] for name, column in columns.items()}


def _path_slopes(step: Step, p: Problem) -> tuple[Array, Array]:
    J = jax.jacfwd(lambda T: step(_with_state(p, T)))(p.T)
    path, edge = p.graph.hops["path"], p.graph.hops["edge"]
    cells = len(p.graph.V)
    P, Q = jnp.arange(cells)[:, None], path.ends["Q"]
    near = ((Q[:, :, None] == edge.ends["N"][:, None, :]) & edge.mask[:, None, :]).any(axis=2)
    ways = ((Q[:, :, None] == Q[:, None, :]) & path.mask[:, None, :]).sum(axis=2)
    alone = path.mask & (cells > Q) & (P != Q) & ~near & (ways == 1)
    return jnp.take_along_axis(J, jnp.where(alone, Q, 0), axis=1), alone


def layer_stages(flux: sp.Expr, start: Mapping[str, float], layers: int) -> Free:
    """hₖ = T + aₖ Δt S + cₖ ΔtL hₖ₋₁ with h₀ = T and T' = h_L, as L = `layers` stages with aₖ and cₖ free.

    `flux` is α times a geometric factor; `start` holds the initial values of a1, c1, …
    """
    stages = []
    state = "T"
    values: dict[str, float] = {}
    for k in range(1, layers + 1):
        a, c, z = symbol(f"a{k}"), symbol(f"c{k}"), symbol(f"z{k}")
        name = "T_new" if k == layers else f"h{k}"
        message = flux * (symbol(f"{state}_N") - symbol(f"{state}_P"))
        output = symbol("T") + a * symbol("dt") * symbol("S") + c * symbol("dt") / symbol("V") * z
        stages.append(Stage({z.name: Message(message, Hop.EDGE)}, {name: Output(output, Ghost.DIRICHLET)}))
        state = name
        values |= {a.name: start[a.name], c.name: start[c.name]}
    return Free(tuple(stages), values)


def two_hop(flux: sp.Expr, start: Mapping[str, float]) -> Free:
    """T' = T + a₂ Δt S + d ΔtL T + b Δt²L S + e (ΔtL)² T, the last term summed over paths, as one stage.

    `flux` is α times a geometric factor of A and δ; `start` holds a1, c1, a2, c2 of two layers, from which the initial
    values of the four constants are computed.
    """
    at = {name: symbol(name) for name in ("T", "S", "V", "dt", "chi")}
    a2, b, d, e = (symbol(name) for name in ("a2", "b", "d", "e"))
    near, far = (_leg(flux, leg) for leg in ("PN", "NQ"))
    messages = {
        "z1": Message(flux * (symbol("T_N") - symbol("T_P")), Hop.EDGE),
        # A Neumann ghost moves with its owner, so χ keeps it out of the sum of weights.
        "w": Message(at["chi"] * flux, Hop.EDGE),
        "z_source": Message(flux * (symbol("S_N") - symbol("S_P")), Hop.EDGE),
        "z2": Message(near * far / symbol("V_N") * (symbol("T_Q") - symbol("T_N")), Hop.PATH),
    }
    z1, w, of_source, z2 = (symbol(name) for name in messages)
    rate = d * z1 + e * at["dt"] * (z2 - w * z1 / at["V"]) + b * at["dt"] * of_source
    output = at["T"] + a2 * at["dt"] * at["S"] + at["dt"] / at["V"] * rate
    values = {
        "a2": start["a2"],
        "b": start["a1"] * start["c2"],
        "d": start["c2"],
        "e": start["c1"] * start["c2"],
    }
    return Free((Stage(messages, {"T_new": Output(output, Ghost.DIRICHLET)}),), values)


def _leg(flux: sp.Expr, leg: str) -> sp.Expr:
    """The flux's factor on one leg of a path."""
    return flux.subs({symbol("A"): symbol(f"A_{leg}"), symbol("delta"): symbol(f"delta_{leg}")})
