"""Manufactured problems: S from the strong form of an equation and a known u, with u or ∂u/∂n given on the walls."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import equinox as eqx
import numpy as np
import sympy as sp

from fluxforge.errors import ExpressionError, InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import field, parse, parse_components
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import COORDINATES, AtMost, Below, Select, symbol, symbols_of
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._face_values import face_conormals
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.pde._parameter import Rank, Where

Function = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Problem:
    """A steady problem of an equation with the known solution `exact`, a formula of x and y.

    The equation's parameters are `parameters`, or its example values times `scale`.

    If `mixed`, walls that face right or down (n_x > ½ or n_y < −¾) prescribe ∂u/∂n, the others u; otherwise all
    prescribe u. For transport without diffusion, ∂u/∂n is given on the walls to the right and above, since it cannot be
    given at an inflow.
    """

    name: str
    exact: str
    scale: float = 1.0
    mixed: bool = False
    equation: Equation = HEAT
    parameters: Settings | None = None

    def graph(self, mesh: Mesh | DualGraph) -> DualGraph:
        """The mesh's graph with this problem's boundary data."""
        graph = as_graph(mesh)
        wall = graph.centre[graph.interior :]
        known = differentiate_solution(self.exact, graph.dimension)
        held = with_walls(graph, value=known.u(*wall.T))
        carried = self.equation.velocity is not None and self.equation.diffusion == 0
        return held if not self.mixed else self._with_conormals(with_mixed_walls(held, known.gradient, upper=carried))

    def _with_conormals(self, graph: DualGraph) -> DualGraph:
        """The graph with q = n·K∇u/(n·K n) on its Neumann walls, which is what schemes with a tensor K expect."""
        tensor = self.equation.diffusion_tensor
        if tensor is None:
            return graph
        walls = slice(graph.interior, None)
        K = self.settings(graph.dimension)[tensor.name]
        conormal = face_conormals(tensor, K, graph, f"parameter {tensor.name!r}")[walls]
        gradient = differentiate_solution(self.exact, graph.dimension).gradient
        slope = sum(conormal[:, i] * along(*graph.centre[walls].T) for i, along in enumerate(gradient))
        slope = slope / np.einsum("fi,fi->f", conormal, graph.n[walls])
        return with_walls(graph, value=np.where(graph.neumann, slope, graph.value))

    def solution(self, graph: DualGraph) -> np.ndarray:
        """The solution u at the centroids."""
        return differentiate_solution(self.exact, graph.dimension).u(*graph.x.T)

    def settings(self, dimension: int) -> Settings:
        """The values of the equation's parameters."""
        return self.equation.example(dimension, self.scale) if self.parameters is None else self.parameters

    def source(self, graph: DualGraph) -> np.ndarray:
        """The source S for which the solution is steady, at the centroids. Raises ExpressionError if not finite."""
        settings = self.settings(graph.dimension)
        formulas = {name: as_formula(value) for name, value in settings.items()}
        S = self.equation.strong(parse(self.exact, COORDINATES[: graph.dimension]), graph.dimension, formulas)
        centroids = {symbol(axis): x for axis, x in zip(COORDINATES, graph.x.T, strict=False)}
        values = np.broadcast_to(np.asarray(evaluate(S, centroids, np), float), (graph.cells,)).copy()
        if not np.isfinite(values).all():
            raise ExpressionError(f"the source of the exact solution {self.exact!r:.60} is not finite in every cell")
        return values


def as_graph(mesh: Mesh | DualGraph) -> DualGraph:
    """The dual graph of a mesh with T = 0 on every wall; a graph is returned as it is."""
    return mesh if isinstance(mesh, DualGraph) else dual(mesh)


def as_formula(value: Any) -> Any:
    """A parameter's value, a number, a text or a tuple of these, as formulas of the coordinates.

    Raises InputError for an array or a function, which cannot be differentiated.
    """
    if isinstance(value, str):
        return parse_components(value, COORDINATES)
    if isinstance(value, tuple | list):
        return tuple(as_formula(part) for part in value)
    if isinstance(value, int | float):
        return sp.Float(float(value))
    raise InputError("an exact solution needs parameters that are numbers or formulas")


def scale_parameter(value: Any, factor: float) -> Any:
    """The value of a parameter, a number or tuples of numbers, times a factor."""
    return tuple(scale_parameter(part, factor) for part in value) if isinstance(value, tuple) else factor * value


def diffusion_strength(equation: Equation, parameters: Settings | None, dimension: int = 2) -> float:
    """The size of the diffusion K, to which fluxes are relative; 1 if it is not a single number."""
    values = {**equation.example(dimension), **(parameters or {})}
    tensor = equation.diffusion_tensor
    if tensor is not None:
        try:
            return float(np.trace(np.asarray(values[tensor.name], float)) / dimension)
        except (TypeError, ValueError):
            return 1.0  # The tensor varies or is given as text.
    return 1.0 if equation.diffusion == 0 else _value_or_one(equation.diffusion, values)


def carried_values(equation: Equation, parameters: Settings | None = None) -> dict[sp.Symbol, sp.Expr]:
    """The values of the parameters of f, which are constants: those given, otherwise their defaults or 1."""
    numbers: dict[str, Any] = {**equation.example(2), **(parameters or {})}
    names = sorted(v.name for v in equation.transported.free_symbols - {equation.u})
    return {symbol(name): sp.Float(float(numbers[name])) for name in names}


def carried_flux(equation: Equation, parameters: Settings | None = None) -> sp.Expr:
    """f(u) with the values of its parameters, as `carried_values` gives them."""
    return equation.transported.xreplace(carried_values(equation, parameters))


def capacity_value(equation: Equation, parameters: Settings | None, dimension: int = 2) -> float:
    """The capacity c, by which rates of change are divided; 1 if it is not a single number."""
    return _value_or_one(equation.capacity, {**equation.example(dimension), **(parameters or {})})


def _value_or_one(formula: sp.Expr, values: Settings) -> float:
    """The value of a formula of parameters; 1 if one of them is not a number."""
    numbers = {symbol(name): value for name, value in values.items() if isinstance(value, int | float)}
    return 1.0 if formula.free_symbols - set(numbers) else float(evaluate(formula, numbers, np))


def has_varying_parameters(equation: Equation) -> bool:
    """Whether a parameter may vary from cell to cell or from face to face."""
    return any(p.where is not Where.CONSTANT for p in equation.parameters)


def varying_settings(equation: Equation, dimension: int, scale: float = 1.0) -> Settings:
    """Example values, and smooth formulas of the coordinates for parameters that may vary.

    Scalars vary by some tens of per cent, each in another way; velocities rotate and diverge, so that a·∇u and ∇·(a u)
    differ.
    """
    settings: dict[str, Any] = {**equation.example(dimension, scale)}
    axes = COORDINATES[:dimension]
    for k, p in enumerate(equation.parameters):
        if p.where is Where.CONSTANT:
            continue
        waves = " + ".join(f"{0.4 / (i + 1)!r}*sin({2 + i + k}*{x} + {i})" for i, x in enumerate(axes))
        if p.rank is Rank.TENSOR:
            settings[p.name] = tuple(tuple(f"{entry!r}*(1 + {waves})" for entry in row) for row in settings[p.name])
        elif p.rank is Rank.VECTOR:
            turned = (*axes[1:], axes[0])
            settings[p.name] = tuple(
                f"{a!r} + {0.3 * scale!r}*{y} + {0.2 * scale!r}*{x}"
                for a, x, y in zip(settings[p.name], axes, turned, strict=True)
            )
        else:
            settings[p.name] = f"{settings[p.name]!r}*(1 + {waves})"
    return settings


@dataclass(frozen=True)
class Functions:
    """A solution and its gradient, as functions of an array per coordinate."""

    u: Function
    gradient: tuple[Function, ...]


@cache
def differentiate_solution(exact: str, dimension: int = 2) -> Functions:
    """A formula of the coordinates and its symbolic gradient; raises InputError for a formula that is not smooth."""
    axes = COORDINATES[:dimension]
    symbols = symbols_of(axes)
    u = parse(exact, symbols)
    if u.atoms(sp.Abs, sp.sign, sp.Min, sp.Max, AtMost, Below, Select):
        raise InputError(f"the exact solution {exact!r:.60} is not smooth: its derivatives make the source")
    gradient = tuple(field(to_text(sp.diff(u, axis)), axes) for axis in symbols.values())
    return Functions(field(exact, axes), gradient)


# Neither is symmetric under exchange of x and y, both are non-zero on all walls, and every second derivative of both
# is non-zero: an operator with another diffusivity tensor has another solution. The diffusivities differ, neither is 1.
HELD_WALLS = Problem("held walls", "1 + exp(x)*sin(2*y + 1/2) + x*y/2", 0.7)
MIXED = Problem("mixed walls", "2 + exp(3*y/4)*cos(2*x + 3/10) - x*y**2/2", 2.5, mixed=True)
PROBLEMS = (HELD_WALLS, MIXED)
# In space, with every second derivative non-zero as well.
IN_SPACE = {HELD_WALLS.name: " + exp(z/2)*sin(x + 2*z) + y*z/3", MIXED.name: " + cos(z)*exp(x/2) - y*z**2/3"}


def problems_of(equation: Equation, dimension: int = 2) -> tuple[Problem, ...]:
    """The manufactured problems of an equation, with one more, of varying parameters, if its parameters may vary."""
    more = IN_SPACE if dimension == 3 else {}
    problems = [replace(one, exact=one.exact + more.get(one.name, ""), equation=equation) for one in PROBLEMS]
    if has_varying_parameters(equation):
        settings = varying_settings(equation, dimension, HELD_WALLS.scale)
        problems.append(replace(problems[0], name="varying parameters", parameters=settings))
    return tuple(problems)


# The solution whose errors are published: symmetric, and zero on the walls of the unit square.
SINES = Problem("sines", "sin(pi*x)*sin(pi*y)")


def with_walls(graph: DualGraph, *, value: np.ndarray) -> DualGraph:
    """The graph with other boundary values, of the same kind."""
    return eqx.tree_at(lambda g: g.value, graph, np.asarray(value, float))


def with_mixed_walls(graph: DualGraph, gradient: tuple[Function, ...], *, upper: bool = False) -> DualGraph:
    """The graph with its right and lower walls, or `upper` ones, turned into Neumann walls with q = n·gradient."""
    walls = slice(graph.interior, None)
    n, centre = graph.n[walls], graph.centre[walls]
    neumann = (n[:, 0] > 0.5) | ((n[:, 1] if upper else -n[:, 1]) > 0.75)
    slope = sum(n[:, i] * along(*centre.T) for i, along in enumerate(gradient))
    return with_neumann_walls(graph, neumann, np.where(neumann, slope, graph.value))


def with_neumann_walls(graph: DualGraph, neumann: np.ndarray, value: np.ndarray) -> DualGraph:
    """The graph with the walls in the mask `neumann` turned into Neumann walls, and with boundary values `value`.

    A Neumann ghost is the mirror image of its owner, as `dual` makes it.
    """
    walls = slice(graph.interior, None)
    n = graph.n[walls]
    height = np.einsum("fe,fe->f", graph.centre[walls] - graph.x[graph.owner[walls]], n)
    d = graph.d.copy()
    d[walls][neumann] = (2.0 * height[:, None] * n)[neumann]
    delta = np.hypot(d[:, 0], d[:, 1]) if graph.dimension == 2 else np.linalg.norm(d, axis=1)
    return eqx.tree_at(lambda g: (g.d, g.delta, g.neumann, g.value), graph, (d, delta, neumann, value))


def with_study_walls(graph: DualGraph) -> DualGraph:
    """The graph with walls of both kinds, whose data have no symmetry that could hide a term."""
    return with_mixed_walls(graph, differentiate_solution("1 + 2*x - 3*y + x*y", graph.dimension).gradient)


def diffusion_rate(equation: Equation, parameters: Settings | None, dimension: int) -> float:
    """The size of K/c, to which the generator of c T_t = ∇·K∇T is proportional."""
    return diffusion_strength(equation, parameters, dimension) / capacity_value(equation, parameters, dimension)


def scale_to_mesh(problem: Problem, mesh: Mesh) -> Problem:
    """The problem with coordinates relative to the mesh's bounding box, whose longer side is taken as 1."""
    low = mesh.points.min(axis=0)
    size = float((mesh.points.max(axis=0) - low).max())
    x, y = (f"((v - ({float(corner)!r}))/{size!r})".replace("v", name) for name, corner in zip("xy", low, strict=True))
    symbols = symbols_of(COORDINATES[:2])
    moved = parse(problem.exact, symbols).xreplace({symbols["x"]: parse(x, symbols), symbols["y"]: parse(y, symbols)})
    return replace(problem, exact=to_text(moved))
