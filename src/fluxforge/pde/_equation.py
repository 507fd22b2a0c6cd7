"""c ∂u/∂t + ∇·(a f(u)) = ∇·(K ∇u) + r(u) + S: a scalar conservation law as a value, and the built-in ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import sympy as sp

from fluxforge._arguments import check_kind
from fluxforge.errors import EquationError, ExpressionError
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import COORDINATES, TIME, symbol
from fluxforge.pde._check import check_formulas, check_names, check_two_point, check_units
from fluxforge.pde._parameter import NUMBER, Parameter, Rank, Unit, Where, unit
from fluxforge.pde._words import Words, latex_text, plain_text, words_of

Given: TypeAlias = "sp.Expr | Sequence[Any]"
"""The value of a parameter as formulas of x, y, z and t: one, one per coordinate (vector), or the rows of a tensor."""

Example: TypeAlias = float | tuple[float, ...] | tuple[tuple[float, ...], ...]
"""An example value of a parameter: a number, a vector, or the rows of a tensor."""

T = TypeVar("T")
# Values without symmetry, which would hide errors: a velocity, then the rows of a positive definite tensor.
_EXAMPLE = ((1.0, 0.4, 0.7), (1.3, 0.2, 0.1), (0.2, 0.9, 0.3), (0.1, 0.3, 1.1))
OF_UNKNOWN = unit(unknown=1)


@dataclass(frozen=True)
class Equation:
    """c ∂u/∂t + ∇·(a f(u)) = ∇·(K ∇u) + r(u) + S with an unknown u, parameters, and formulas c, f, K and r.

    - `capacity` c and `reaction` r are formulas of scalar parameters, r also of the unknown;
    - `transported` is f(u), carried along the vector parameter a named `velocity`;
    - `diffusion` is K: a formula of scalar parameters and the unknown, or the symbol of a tensor parameter;
    - `two_point` replaces the flux that `flux` derives from a, f and K: a formula of `u_P`, `u_N`, `delta` and the
      parameters at the face.

    Sign convention: the flux F points out of the cell P along its normal n, F(u, u) = f(u) a·n, and a cell receives
    −A F. Raises EquationError for names that clash, formulas with symbols that are not allowed, terms of different
    units, and a `two_point` that is not a flux of this equation.
    """

    name: str
    unknown: str = "u"
    summary: str = ""
    parameters: tuple[Parameter, ...] = ()
    capacity: sp.Expr = sp.S.One
    transported: sp.Expr = sp.S.Zero
    velocity: str | None = None
    diffusion: sp.Expr = sp.S.Zero
    reaction: sp.Expr = sp.S.Zero
    two_point: sp.Expr | None = None
    unknown_unit: Unit = OF_UNKNOWN

    def __post_init__(self) -> None:
        """Check names, formulas, units and `two_point`; raises EquationError."""
        check_names(self)
        check_formulas(self)
        check_units(self)
        check_two_point(self)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.parameters) or "none"
        return f"Equation({self.name}: unknown {self.unknown}, parameters {names})"

    def _repr_latex_(self) -> str:
        """The equation as LaTeX, which notebooks display."""
        return f"$$ {latex_text(self)} $$"

    @property
    def u(self) -> sp.Symbol:
        """The symbol of the unknown in the formulas."""
        return symbol(self.unknown)

    def parameter(self, name: str) -> Parameter:
        """A parameter by name; raises EquationError if the equation has none of that name."""
        for each in self.parameters:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.parameters) or "none"
        raise EquationError(f"equation {self.name!r} has no parameter {name!r:.60}; it has: {known}")

    def settings(self, values: Mapping[str, T] | None = None, **words: T | None) -> dict[str, T]:
        """Values by parameter name; `words` name parameters by their meaning: `diffusivity=2` sets heat's α.

        Words whose value is None are ignored. Raises EquationError for a word that no parameter has as its meaning, and
        for a parameter that is given twice, InputError for values that are no mapping.
        """
        wanted = "a mapping from names to values"
        settings = {} if values is None else dict(check_kind(values, "parameters", Mapping, wanted))
        for word, value in words.items():
            if value is None:
                continue
            name = next((p.name for p in self.parameters if p.meaning == word), None)
            if name is None:
                names = ", ".join(p.name for p in self.parameters) or "none"
                raise EquationError(f"equation {self.name!r} has no {word}; its parameters are: {names}")
            if name in settings:
                raise EquationError(f"equation {self.name!r}: {word} and {name} are the same parameter: give one")
            settings[name] = value
        return settings

    def example(self, dimension: int, scale: float = 1.0) -> dict[str, Example]:
        """Values of all parameters to try a scheme with, times `scale`.

        Scalars have their default, or 1; vectors and tensors have fixed values without symmetry.
        """
        values: dict[str, Example] = {}
        for p in self.parameters:
            if p.rank is Rank.VECTOR:
                values[p.name] = tuple(scale * a for a in _EXAMPLE[0][:dimension])
            elif p.rank is Rank.TENSOR:
                values[p.name] = tuple(tuple(scale * k for k in row[:dimension]) for row in _EXAMPLE[1:][:dimension])
            else:
                values[p.name] = scale * (p.default if isinstance(p.default, int | float) else 1.0)
        return values

    def strong(self, u: sp.Expr, dimension: int, values: Mapping[str, Given] | None = None) -> sp.Expr:
        """The source S that makes u(x, …, t) a solution: c ∂u/∂t + ∇·(a f(u)) − ∇·(K∇u) − r(u).

        `values` gives parameters as formulas of the coordinates; those left out stay symbols: `alpha`, `a_x`, `K_xy`.
        """
        given = dict(values or {})
        for name in given:
            self.parameter(name)
        axes = [symbol(name) for name in COORDINATES[:dimension]]
        scalars = {symbol(p.name): given[p.name] for p in self.parameters if p.rank is Rank.SCALAR and p.name in given}
        at = {self.u: u, **scalars}
        total = self.capacity.xreplace(at) * sp.diff(u, symbol(TIME)) - self.reaction.xreplace(at)
        if self.velocity is not None:
            a = _components(self.parameter(self.velocity), dimension, given)
            carried = self.transported.xreplace(at)
            total += sp.Add(*(differentiate(a[i] * carried, axis) for i, axis in enumerate(axes)))
        K = self._tensor(dimension, given, at)
        slope = [sp.diff(u, axis) for axis in axes]
        flows = [sp.Add(*(K[i * dimension + j] * slope[j] for j in range(dimension))) for i in range(dimension)]
        return total - sp.Add(*(differentiate(flow, axis) for flow, axis in zip(flows, axes, strict=True)))

    def _tensor(self, dimension: int, given: Mapping[str, Given], at: Mapping[sp.Symbol, sp.Expr]) -> Sequence[sp.Expr]:
        """The entries of K, row by row."""
        tensor = self.diffusion_tensor
        if tensor is not None:
            return _components(tensor, dimension, given)
        K = self.diffusion.xreplace(at)
        return [K if i == j else sp.Integer(0) for i in range(dimension) for j in range(dimension)]

    @property
    def diffusion_tensor(self) -> Parameter | None:
        """The parameter that K is, if K is a tensor; otherwise None."""
        tensors = (p for p in self.parameters if p.rank is Rank.TENSOR)
        return next((p for p in tensors if symbol(p.name) == self.diffusion), None)

    def flux(self, P: sp.Expr, N: sp.Expr, jump: sp.Expr | None = None) -> sp.Expr:
        """The two-point flux F out of the cell P, for the values P and N of the unknown in the two cells.

        Diffusion: K (P − N)/δ, with the harmonic mean over parameters given per cell, and the arithmetic mean over P
        and N where K depends on the unknown. Transport: Rusanov's flux ½ a·n (f(P) + f(N)) −
        ½ |a·n| max(|f′(P)|, |f′(N)|)(N − P), which for f = u is upwind. `jump` replaces N − P in these formulas;
        `two_point` replaces them altogether.
        """
        if self.two_point is not None:
            ends = {symbol(f"{self.unknown}_P"): P, symbol(f"{self.unknown}_N"): N}
            return self.two_point.xreplace(ends)
        jump = N - P if jump is None else jump
        total = -self._conductivity(P, N) * jump / symbol("delta")
        if self.velocity is None:
            return total
        along = symbol(self.parameter(self.velocity).normal_name)
        carried = [self.transported.xreplace({self.u: end}) for end in (P, N)]
        slope = differentiate(self.transported, self.u)
        speeds = {sp.Abs(slope.xreplace({self.u: end})) for end in (P, N)}
        fastest = sp.Max(*speeds, evaluate=False) if len(speeds) > 1 else speeds.pop()
        return total + along * sp.Add(*carried) / 2 - sp.Abs(along) * fastest * jump / 2

    def _conductivity(self, P: sp.Expr, N: sp.Expr) -> sp.Expr:
        tensor = self.diffusion_tensor
        if tensor is not None:
            return symbol(tensor.normal_name)
        if self.u not in self.diffusion.free_symbols:
            return self._harmonic_mean(self.diffusion, P)
        # K = k g(u): g may vanish in both cells, where a harmonic mean would be 0/0.
        k, g = sp.factor_terms(self.diffusion).as_independent(self.u, as_Add=False)
        return self._harmonic_mean(k, P) * sp.Add(*(self._harmonic_mean(g, end) for end in (P, N))) / 2

    def _harmonic_mean(self, formula: sp.Expr, u: sp.Expr) -> sp.Expr:
        """The harmonic mean over the parameters of the two cells, the unknown being u in both."""
        sides = [self.at_cell(formula, u, end) for end in ("P", "N")]
        return sides[0] if sides[0] == sides[1] else 2 * sides[0] * sides[1] / (sides[0] + sides[1])

    def at_cell(self, formula: sp.Expr, u: sp.Expr, end: str = "") -> sp.Expr:
        """A formula (c, K or r) with u for the unknown; with `end` P or N, its per-cell parameters are of that cell."""
        cells = [p.name for p in self.parameters if p.in_cells] if end else []
        return formula.xreplace({self.u: u, **{symbol(name): symbol(f"{name}_{end}") for name in cells}})

    def slopes(self, P: sp.Symbol, N: sp.Symbol) -> tuple[sp.Expr, sp.Expr]:
        """∂F/∂u_P and ∂F/∂u_P + ∂F/∂u_N of the flux out of P.

        The second is the derivative at a wall whose ghost N follows the value of P.
        """
        flux = self.flux(P, N)
        own, other = (differentiate(flux, end) for end in (P, N))
        return own, own + other

    @property
    def words(self) -> Words:
        """The words and letters for the equation in certificates and messages."""
        return words_of(self)

    @property
    def text(self) -> str:
        """The equation on one line: `∂T/∂t = ∇·(alpha ∇T) + S`."""
        return plain_text(self)

    def with_reaction(self, reaction: str) -> "Equation":
        """The equation with another r(u), a formula of the unknown and of scalar parameters that are not per face.

        Parameters that no formula contains any more are left out. Raises EquationError for a formula that cannot be
        read, contains anything else, or does not have the unit of the other terms.
        """
        names = [self.unknown, *(name for p in self.parameters for name in p.cell_names)]
        try:
            formula = parse(reaction, names)
        except ExpressionError as error:
            raise EquationError(f"equation {self.name!r}: reaction: {error}") from error
        others = (self.capacity, self.transported, self.diffusion, self.two_point or sp.S.Zero)
        used = {each.name for part in (formula, *others) for each in part.free_symbols} | {self.velocity}
        kept = tuple(p for p in self.parameters if used & {p.name, *p.edge_names()})
        return replace(self, reaction=formula, parameters=kept)

    @property
    def only_diffuses(self) -> bool:
        """Whether there is neither transport nor a reaction, so that c and K describe the equation."""
        return self.velocity is None and self.reaction == 0

    @property
    def linear(self) -> bool:
        """Whether f, r, K∇u and `two_point` are affine in the unknown."""
        strong = (sp.diff(part, self.u, 2) for part in (self.transported, self.reaction))
        ends = [symbol(f"{self.unknown}_{end}") for end in ("P", "N")]
        flux = (sp.diff(self.two_point or 0, one, other) for one in ends for other in ends)
        return not any(part != 0 for part in (*strong, *flux)) and self.u not in self.diffusion.free_symbols


def differentiate(formula: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    """The derivative in functions that `evaluate` knows: Heaviside's step becomes (1 + sign)/2, and Dirac's δ 0."""
    derivative = sp.diff(formula, variable).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
    return derivative.replace(sp.Heaviside, lambda at, *_: (1 + sp.sign(at)) / 2)


def _components(parameter: Parameter, dimension: int, given: Mapping[str, Given]) -> Sequence[sp.Expr]:
    """The components of a vector, or of a tensor row by row: as given, or symbols."""
    if parameter.name not in given:
        return [symbol(name) for name in parameter.component_names(dimension)]
    rows = given[parameter.name]
    if parameter.rank is Rank.TENSOR:
        rows = [entry for row in rows for entry in row]
    wanted = dimension if parameter.rank is Rank.VECTOR else dimension**2
    if not isinstance(rows, Sequence) or len(rows) != wanted:
        raise EquationError(f"parameter {parameter.name!r} should have {wanted} components in {dimension} dimensions")
    return list(rows)


_DIFFUSIVITY = unit(length=2, time=-1)
_SPEED = unit(length=1, time=-1)
_u = symbol("u")
_D = Parameter("D", meaning="diffusivity", where=Where.CELL, unit=_DIFFUSIVITY, default=1.0)

HEAT = Equation(
    name="heat",
    unknown="T",
    summary="conduction of heat with one diffusivity",
    parameters=(Parameter("alpha", meaning="diffusivity", unit=_DIFFUSIVITY, default=1.0),),
    diffusion=symbol("alpha"),
)

CONDUCTION = Equation(
    name="conduction",
    unknown="T",
    summary="conduction of heat; capacity and conductivity may vary from cell to cell, and jump",
    parameters=(
        Parameter("rhoc", meaning="volumetric heat capacity", where=Where.CELL, unit=NUMBER, default=1.0),
        Parameter("k", meaning="conductivity", where=Where.CELL, unit=_DIFFUSIVITY, default=1.0),
    ),
    capacity=symbol("rhoc"),
    diffusion=symbol("k"),
)

ANISOTROPIC = Equation(
    name="anisotropic",
    unknown="T",
    summary="conduction of heat with a conductivity tensor that may vary from cell to cell",
    parameters=(Parameter("K", meaning="conductivity tensor", rank=Rank.TENSOR, where=Where.CELL, unit=_DIFFUSIVITY),),
    diffusion=symbol("K"),
)


def _velocity(name: str = "velocity", meaning: str = "velocity", default: tuple[float, ...] | None = None) -> Parameter:
    return Parameter(name, meaning=meaning, rank=Rank.VECTOR, where=Where.FACE, unit=_SPEED, default=default)


ADVECTION = Equation(
    name="advection",
    summary="transport by a given velocity",
    parameters=(_velocity(),),
    transported=_u,
    velocity="velocity",
)

ADVECTION_DIFFUSION = Equation(
    name="advection-diffusion",
    summary="transport by a given velocity, and diffusion",
    parameters=(_velocity(), _D),
    transported=_u,
    velocity="velocity",
    diffusion=symbol("D"),
)

BURGERS = Equation(
    name="burgers",
    summary="the inviscid equation of Burgers along a direction",
    parameters=(_velocity("direction", "direction and unit of speed", (1.0, 0.0)),),
    transported=_u**2 / 2,
    velocity="direction",
    unknown_unit=NUMBER,
)

TRAFFIC = Equation(
    name="traffic",
    summary="density of traffic, from 0 to 1, on a road along a direction",
    parameters=(_velocity("direction", "direction, and speed on an empty road", (1.0, 0.0)),),
    transported=sp.Mul(_u, 1 - _u),
    velocity="direction",
    unknown_unit=NUMBER,
)

REACTION_DIFFUSION = Equation(
    name="reaction-diffusion",
    summary="diffusion and growth to 1, the equation of Fisher, Kolmogorov, Petrovsky and Piskunov",
    parameters=(_D, Parameter("r", meaning="rate of growth", unit=unit(time=-1), default=1.0)),
    diffusion=symbol("D"),
    reaction=symbol("r") * _u * (1 - _u),
    unknown_unit=NUMBER,
)

ALLEN_CAHN = Equation(
    name="allen-cahn",
    summary="diffusion and separation into the phases -1 and 1, the equation of Allen and Cahn",
    parameters=(_D, Parameter("r", meaning="rate of separation", unit=unit(time=-1), default=1.0)),
    diffusion=symbol("D"),
    reaction=symbol("r") * (_u - _u**3),
    unknown_unit=NUMBER,
)

BUILT_IN: dict[str, Equation] = {
    equation.name: equation
    for equation in (
        HEAT,
        CONDUCTION,
        ANISOTROPIC,
        ADVECTION,
        ADVECTION_DIFFUSION,
        BURGERS,
        TRAFFIC,
        REACTION_DIFFUSION,
        ALLEN_CAHN,
    )
}
