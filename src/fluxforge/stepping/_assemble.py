"""A linear scheme on a graph as sparse matrices; all coefficients, which do not depend on T, are evaluated once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from jaxtyping import Float, Inexact
from scipy.sparse import csr_array, diags_array, eye_array

from fluxforge.errors import NumericalError, SchemeError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import AtMost, Below, Select, symbol
from fluxforge.graph._neighbourhoods import Neighbourhood, Neighbourhoods, View, check_dimension, view
from fluxforge.mesh._dual import DualGraph, check_graph
from fluxforge.mesh._parameters import Settings, resolve
from fluxforge.mesh._walls import close_walls
from fluxforge.scheme._linear import Affine, LinearStage, linear_stages
from fluxforge.scheme._scheme import Ghost, Hop, Scheme, check_scheme

Column = Inexact[np.ndarray, " cells"]


@dataclass(frozen=True)
class AffineMap:
    """value = Σ_f matrices[f] f + constant, f among T, S and earlier outputs."""

    matrices: Mapping[str, csr_array]
    constant: Column


@dataclass(frozen=True)
class Operator:
    """T' = M T + N S + b for an explicit scheme; for an implicit one, F(T) = M T + N S + b.

    An implicit step is T' − T = (1−θ)(F(T)−T) + θ(F(T')−T').
    """

    M: csr_array
    N: csr_array
    b: Column
    theta: float


def assemble(
    scheme: Scheme, graph: DualGraph, *, dt: complex, parameters: Settings | None
) -> tuple[Mapping[str, AffineMap], ...]:
    """Each stage's outputs as affine maps of the fields and of earlier outputs; SchemeError for a nonlinear scheme."""
    stages = linear_stages(check_scheme(scheme))
    check_graph(graph)
    if stages is None:
        raise SchemeError(f"scheme {scheme.name!r} is not linear in T and S, so it has no matrix")
    assembly = _Assembly(scheme, graph, dt=dt, parameters=parameters)
    return tuple(assembly.assemble_stage(stage) for stage in stages)


def operator(scheme: Scheme, graph: DualGraph, *, dt: complex, parameters: Settings | None = None) -> Operator:
    """The whole step as one affine map of T and S, by composing the stages."""
    stages = assemble(scheme, graph, dt=dt, parameters=parameters)
    return compose(stages, graph.cells, theta=float(scheme.theta))


def compose(stages: tuple[Mapping[str, AffineMap], ...], n: int, *, theta: float = 0.0) -> Operator:
    """Assembled stages of n cells as one affine map of T and S."""
    known = {
        "T": (eye_array(n, format="csr"), csr_array((n, n)), np.zeros(n)),
        "S": (csr_array((n, n)), eye_array(n, format="csr"), np.zeros(n)),
    }
    for stage in stages:
        done = {}
        for name, affine in stage.items():
            M, N, b = csr_array((n, n)), csr_array((n, n)), affine.constant
            for field, matrix in affine.matrices.items():
                inner = known[field]
                M, N, b = M + matrix @ inner[0], N + matrix @ inner[1], b + matrix @ inner[2]
            done[name] = (M, N, b)
        known |= done
    M, N, b = known["T_new"]
    return Operator(csr_array(M), csr_array(N), b, theta)


def generator(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> Operator:
    """∂M/∂Δt, ∂N/∂Δt and ∂b/∂Δt at Δt = 0: the semi-discrete system dT/dt = G T + s S + r the scheme integrates.

    The slope of each coefficient is taken by a complex step, Im c(iε)/ε, which loses no digits. The stages are composed
    to first order, (C₀ + ΔtC₁)(M₀ + ΔtM₁) = C₀M₀ + Δt(C₁M₀ + C₀M₁), so the stencil does not grow with their number.
    """
    _refuse_kinks(check_scheme(scheme))
    n = check_graph(graph).cells
    nothing, one = csr_array((n, n)), eye_array(n, format="csr")
    zero = np.zeros(n)
    known = {
        "T": _FirstOrder((one, nothing, zero), (nothing, nothing, zero)),
        "S": _FirstOrder((nothing, one, zero), (nothing, nothing, zero)),
    }
    for stage in assemble(scheme, graph, dt=1j * _EPSILON, parameters=parameters):
        known |= {name: _compose_first_order(affine, known) for name, affine in stage.items()}
    _refuse_jump(scheme, known["T_new"].value, one)
    slope = known["T_new"].slope
    return Operator(csr_array(slope[0]), csr_array(slope[1]), slope[2], float(scheme.theta))


def _refuse_kinks(scheme: Scheme) -> None:
    """Raise SchemeError for a formula that is not smooth in Δt: a complex step differentiates smooth functions only."""
    for part in scheme.formulas():
        for kink in part.atoms(sp.Abs, sp.Min, sp.Max, sp.sign, AtMost, Below, Select):
            if symbol("dt") in kink.free_symbols:
                raise SchemeError(f"scheme {scheme.name!r} has no generator: {kink} is not differentiable in dt")


def _refuse_jump(scheme: Scheme, start: "_Parts", one: csr_array) -> None:
    """Raise SchemeError unless M(0) = I, N(0) = 0 and b(0) = 0: a step of Δt = 0 should not change the field."""
    M, N, b = start
    if max(abs(M - one).max(), abs(N).max(), np.abs(b).max()) > _JUMP_TOLERANCE:
        raise SchemeError(f"scheme {scheme.name!r} has no generator: a step of dt = 0 changes the field")


# ε of the complex step: terms in ε² are far below round-off.
_EPSILON = 1e-20
# Weights of stages add up to 1 up to a few roundings each, and there are at most some hundred stages.
_JUMP_TOLERANCE = 1e-12
_Parts = tuple[csr_array, csr_array, Column]


@dataclass(frozen=True)
class _FirstOrder:
    """M, N and b of an output at Δt = 0, and their slopes there."""

    value: _Parts
    slope: _Parts


def _compose_first_order(affine: AffineMap, known: Mapping[str, _FirstOrder]) -> _FirstOrder:
    n = len(affine.constant)
    empty = csr_array((n, n))
    value: list[Any] = [empty, empty, np.real(affine.constant)]
    slope: list[Any] = [empty, empty, np.imag(affine.constant) / _EPSILON]
    for field, matrix in affine.matrices.items():
        C0, C1 = (_drop_zeros(part) for part in (matrix.real, matrix.imag / _EPSILON))
        inner = known[field]
        for k in range(3):
            value[k] = value[k] + C0 @ inner.value[k]
            slope[k] = slope[k] + C1 @ inner.value[k] + C0 @ inner.slope[k]
    return _FirstOrder(tuple(value), tuple(slope))


def _drop_zeros(matrix: csr_array) -> csr_array:
    matrix = csr_array(matrix)
    matrix.eliminate_zeros()
    return matrix


def apply(stages: tuple[Mapping[str, AffineMap], ...], T: Column, S: Column) -> Column:
    """One step F(T) of an assembled scheme, stage by stage, without forming M."""
    fields = {"T": T, "S": S}
    for stage in stages:
        fields |= {
            name: affine.constant + sum(matrix @ fields[field] for field, matrix in affine.matrices.items())
            for name, affine in stage.items()
        }
    return fields["T_new"]


class _Assembly:
    """Assembles one stage after the other; `fixed` holds the outputs that do not depend on T or S."""

    def __init__(self, scheme: Scheme, graph: DualGraph, *, dt: complex, parameters: Settings | None) -> None:
        self.name = scheme.name
        check_dimension(scheme, graph)
        fields = resolve(scheme.equation, graph, parameters)
        self.graph = graph = close_walls(graph, scheme.equation, fields)
        self.hops = Neighbourhoods(graph, fields)
        self.rules = scheme.ghost_rules() | {"S": Ghost.ZERO}
        self.parameters: dict[sp.Symbol, Any] = {symbol("dt"): dt}
        self.parameters |= {symbol(name): value for name, value in fields.constants.items()}
        self.cells = {symbol(name): value for name, value in fields.cells.items()}
        self.fixed: dict[str, np.ndarray] = {}

    def assemble_stage(self, stage: LinearStage) -> dict[str, AffineMap]:
        sums = {
            name: np.where(self.hops[hop].mask, self._slot_values(hop, expression), 0.0).sum(axis=1)
            for name, (hop, expression) in stage.fixed_messages.items()
        }
        known = {symbol(name): value for name, value in {"V": self.graph.V, **self.fixed, **sums}.items()}
        at_node = self.parameters | self.cells | known
        messages = {name: self._message(hop, affine) for name, (hop, affine) in stage.messages.items()}
        outputs = {name: self._output(affine, at_node, messages) for name, affine in stage.outputs.items()}
        for name, expression in stage.fixed_outputs.items():
            self.fixed[name] = self._column(expression, at_node)
            if name == "T_new":
                outputs[name] = AffineMap({}, self.fixed[name])
        return outputs

    def _column(self, expression: sp.Expr, values: Mapping[sp.Symbol, Any]) -> Column:
        with np.errstate(all="ignore"):
            value = np.asarray(evaluate(expression, values, np))
        column = np.broadcast_to(value, (self.graph.cells,)) + np.zeros(1)
        self._refuse_infinite(column, "an output's coefficient")
        return column

    def _refuse_infinite(self, column: Column, what: str) -> None:
        if not np.isfinite(column).all():
            cell = int(np.flatnonzero(~np.isfinite(column))[0])
            raise SchemeError(
                f"scheme {self.name!r}: {what} is not finite at cell {cell}: its formula divides by zero or "
                "overflows there"
            )

    def _slot_values(self, hop: Hop, expression: sp.Expr) -> np.ndarray:
        """The values of a geometric expression in every slot of a hop."""
        around = self.hops[hop]
        geometry = {own: around.geometry[own] for own in expression.free_symbols & around.geometry.keys()}
        values: dict[sp.Symbol, Any] = {**self.parameters, **geometry}
        for name, value in self.fixed.items():
            shown = view(self.graph, self.rules[name]).of(value)
            values |= {symbol(f"{name}_{end}"): shown[node] for end, node in around.ends.items()}
            if around.over_paths is not None:
                values[symbol(f"{name}_N")] = around.over_paths.of(shown[around.over_paths.middle])
        # Unused slots contain the geometry of some other face; the caller masks their values.
        with np.errstate(all="ignore"):
            value = np.asarray(evaluate(expression, values, np))
        return np.broadcast_to(value, around.mask.shape)

    def _message(self, hop: Hop, affine: Affine) -> AffineMap:
        """The sum Σ_s c_s f_s over slots as an affine map, each f_s the value of a field at one end."""
        around = self.hops[hop]
        matrices: dict[str, csr_array] = {}
        constant = np.where(around.mask, self._slot_values(hop, affine.constant), 0.0).sum(axis=1)
        for variable, expression in affine.coefficients.items():
            name, _, end = variable.name.rpartition("_")
            weight = np.where(around.mask, self._slot_values(hop, expression), 0.0)
            self._refuse_infinite(weight.sum(axis=1), f"a message's coefficient of {variable}")
            matrix, shown = self._gather(around, end, weight, view(self.graph, self.rules[name]))
            matrices[name] = matrices[name] + matrix if name in matrices else matrix
            constant = constant + shown
        return AffineMap(matrices, constant)

    def _gather(self, around: Neighbourhood, end: str, weight: np.ndarray, seen: View) -> tuple[csr_array, Column]:
        """Σ_slots weight · (value at the node of that end), as a matrix on cells and a constant from the boundary."""
        if end in around.ends:
            node = around.ends[end]
        else:  # N of a ring: spread each slot's weight evenly over its paths
            assert around.over_paths is not None
            slot = np.maximum(around.over_paths.slot_of_path, 0)
            share = weight / np.maximum(around.over_paths.multiplicity, 1)
            weight = np.where(around.over_paths.slot_of_path >= 0, np.take_along_axis(share, slot, axis=1), 0.0)
            node = around.over_paths.middle
        n, slots = weight.shape
        indptr = np.arange(0, n * slots + 1, slots)
        coefficients = (weight * seen.scale[node]).ravel()
        matrix = csr_array((coefficients, seen.cell[node].ravel(), indptr), shape=(n, n))
        matrix.sum_duplicates()
        return matrix, (weight * seen.constant[node]).sum(axis=1)

    def _output(self, affine: Affine, at_node: Mapping[sp.Symbol, Any], messages: Mapping[str, AffineMap]) -> AffineMap:
        """Σ coefficients · (field or sum) + constant, the sums replaced by their own maps."""
        matrices: dict[str, csr_array] = {}
        constant = self._column(affine.constant, at_node)
        for variable, expression in affine.coefficients.items():
            scale = self._column(expression, at_node)
            inner = messages.get(variable.name)
            if inner is None:
                parts: Mapping[str, Any] = {variable.name: eye_array(self.graph.cells, format="csr")}
            else:
                parts = inner.matrices
                constant = constant + scale * inner.constant
            for name, matrix in parts.items():
                scaled = scale_rows(matrix, scale)
                matrices[name] = matrices[name] + scaled if name in matrices else scaled
        return AffineMap(matrices, constant)


def scale_rows(matrix: csr_array, scale: Column) -> csr_array:
    """diag(scale) · matrix, with the matrix's own pattern."""
    data = matrix.data * np.repeat(scale, np.diff(matrix.indptr))
    return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def sides(step: Operator) -> tuple[csr_array, csr_array]:
    """The matrices I − θ(M − I) on the left and I + (1 − θ)(M − I) on the right of the system."""
    one = eye_array(step.M.shape[0], format="csr")
    change = step.M - one
    return csr_array(one - step.theta * change), csr_array(one + (1 - step.theta) * change)


def symmetric_system(step: Operator, V: Float[np.ndarray, " cells"]) -> csr_array | None:
    """V·(the left side), which is symmetric for a conservative two-point flux; None if it is not symmetric."""
    left = csr_array(diags_array(V) @ sides(step)[0])
    return left if is_symmetric(left) else None


def is_symmetric(matrix: csr_array) -> bool:
    """Whether a matrix is symmetric to round-off."""
    return bool(abs(matrix - matrix.T).max() <= 1e-12 * abs(matrix).max())


def exchange_rows(step: Operator) -> csr_array:
    """M − I with each diagonal entry replaced by its row's sum e_P, so that (M − I)T = e_P T_P + Σ m_PN (T_N − T_P).

    Exchange between cells has row sums 0. Round-off in them is set to 0: otherwise it would change a constant field at
    every step, always in the same direction.
    """
    change = csr_array(step.M - eye_array(step.M.shape[0], format="csr"))
    total = np.asarray(change.sum(axis=1))
    size = 1.0 + np.asarray(abs(change).sum(axis=1))
    total[np.abs(total) <= 8.0 * np.finfo(float).eps * size] = 0.0
    return csr_array(change - diags_array(change.diagonal()) + diags_array(total))


MOST_CELLS_SOLVED = 2000


def step_matrix(scheme: Scheme, graph: DualGraph, dt: float, *, parameters: Settings | None = None) -> csr_array:
    """∂T'/∂T as a matrix. For an implicit scheme it is computed by solving the system, and is full.

    Raises NumericalError for an implicit scheme on more than MOST_CELLS_SOLVED cells.
    """
    step = operator(scheme, graph, dt=dt, parameters=parameters)
    if step.theta == 0:
        return step.M
    if graph.cells > MOST_CELLS_SOLVED:
        raise NumericalError(
            f"the matrix of an implicit scheme is full: it is computed for at most {MOST_CELLS_SOLVED} cells, "
            f"and the mesh has {graph.cells}"
        )
    left, right = sides(step)
    return csr_array(np.linalg.solve(left.toarray(), right.toarray()))
