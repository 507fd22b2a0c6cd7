"""A flux formula as a scheme, and its comparison with another formula."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import sympy as sp

from fluxforge.experiment._setup import Experiment, evaluate_on, parse_flux
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Rank, Where
from fluxforge.scheme._integrate import Axes, Prepared, Space, State, integrate
from fluxforge.scheme._scheme import Message, Scheme
from fluxforge.scheme._tableau import EULER

# Smaller arguments of a formula that is 0/0 at 0 are replaced by this one: 1 − e⁻ˣ has eleven correct digits there, and
# a function that is even in x differs from its value at 0 by x² = 1e-10 only.
NEAR_ZERO = sp.Float(1e-5)
POINTS = 4_000
# Two formulas are the same function if they differ by no more than round-off at every point, relative to their size.
FORMULA_TOLERANCE = 1e-9


def simplify_flux(flux: sp.Expr) -> sp.Expr:
    """A rational formula as one fraction; any other is returned as it is: SymPy takes long to simplify min and max."""
    if flux.has(sp.Min, sp.Max, sp.Abs, sp.exp, sp.tanh, sp.log, sp.sqrt) or flux.atoms(sp.Float):
        return flux
    top, bottom = sp.fraction(sp.cancel(sp.together(flux)))
    return sp.factor(top) / bottom


def guard_formula(g: sp.Expr, names: tuple[str, ...]) -> tuple[sp.Expr, bool]:
    """The formula with max(q, 10⁻⁵) for q if it is 0/0 at q = 0 and has a limit; and whether it was changed."""
    if len(names) != 1:
        return g, False
    q = symbol(names[0])
    with np.errstate(all="ignore"):
        at, near = (float(evaluate(g, {q: np.float64(value)}, np)) for value in (0.0, float(NEAR_ZERO)))
    if np.isfinite(at) or not np.isfinite(near):
        return g, False
    return g.xreplace({q: sp.Max(q, NEAR_ZERO)}), True


def make_scheme(flux: sp.Expr, experiment: Experiment, name: str) -> Scheme:
    """Forward Euler with this flux between two cells; `name` is that of the recipe.

    Raises SchemeError for a flux that a mesh cannot evaluate. The name of the scheme begins with `discovered-`, since
    recipes may have names of built-in schemes.

    The distances of two centres from their face are taken as δ V_P/(V_P + V_N) and δ V_N/(V_P + V_N), which is exact
    between two triangles, tetrahedra or rectangles. A parameter that both cells of the experiments had in common is the
    harmonic mean of the two cells'.
    """
    on_mesh = flux.xreplace(_map_to_mesh(experiment))

    def prepare(equation: Equation, state: State, tag: str, axes: Axes) -> Prepared:
        ends = {symbol(f"{equation.unknown}_{end}"): state.at(f"_{end}") for end in "PN"}
        return Prepared((), Message(-symbol("A") * on_mesh.xreplace(ends)))

    space = Space("discovered", "two-point flux found by experiments", prepare)
    return integrate(EULER, experiment.equation, space, name=f"discovered-{name}")


def _map_to_mesh(experiment: Experiment) -> dict[sp.Symbol, sp.Expr]:
    """The formulas on a face of a mesh of those variables of an experiment that a face does not have itself."""
    near, far = 1 / symbol("V_P"), 1 / symbol("V_N")  # 1/V is 0 at the ghost of a Dirichlet face
    share = {"d_P": far, "d_N": near}
    known = set(experiment.names)
    on_face = {symbol(name): symbol("delta") * part / (near + far) for name, part in share.items() if name in known}
    for p in experiment.equation.parameters:
        if p.where is Where.CELL and p.rank is Rank.SCALAR and p.name in known:
            P, N = symbol(f"{p.name}_P"), symbol(f"{p.name}_N")
            on_face[symbol(p.name)] = 2 * P * N / (P + N)
    return on_face


@dataclass(frozen=True)
class Comparison:
    """A textbook formula, whether the flux is the same function, the largest difference found, and how it was decided.

    `difference` is relative to the largest flux at random points of the experiment.
    """

    name: str
    formula: sp.Expr
    same: bool
    difference: float
    method: str


def compare_flux(flux: sp.Expr, text: str, experiment: Experiment) -> Comparison:
    """Compare a flux with a textbook formula at random points, and by algebra if SymPy decides.

    Raises ExpressionError if `text` is not a formula of the experiment's variables.
    """
    book = parse_flux(text, experiment)
    rng = np.random.default_rng(0)
    x = experiment.draw(POINTS, rng)
    ours, theirs = (evaluate_on(x, each) for each in (flux, book))
    difference = float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
    same = difference <= FORMULA_TOLERANCE
    method = f"{POINTS:,} random points"
    if same and _proves_equal(flux, book, experiment):
        method = f"algebra, and {method}"
    return Comparison(text, book, bool(same), difference, method)


def _proves_equal(one: sp.Expr, other: sp.Expr, experiment: Experiment) -> bool:
    """Whether SymPy shows that two formulas are equal, for every sign of what changes sign and every order of states.

    States are written as c ± p and c ± (p + q) with p, q > 0, c the point where f′ = 0, so that extremes are decided.
    """
    if one.atoms(sp.Float):
        return False
    positive = {each.symbol: symbol(each.name, "positive") for each in experiment.variables if each.positive}
    p, q, s = (symbol(name, "positive") for name in ("p_", "q_", "s_"))
    P, N = (each.symbol for each in experiment.states)
    velocity, equation = experiment.velocity, experiment.equation
    roots = [] if equation.linear else sp.solve(sp.diff(equation.transported, equation.u), equation.u)
    centre = roots[0] if len(roots) == 1 else sp.S.Zero
    for near, far, turned, swapped in product((1, -1), (1, -1), (1, -1), (False, True)):
        pair = (centre + near * p, centre + far * (p + q))
        ends = dict(zip((N, P) if swapped else (P, N), pair, strict=True))
        signs = {} if velocity is None else {velocity.symbol: turned * s}
        at = {**positive, **ends, **signs}
        off = one.subs(at, simultaneous=True) - other.subs(at, simultaneous=True)
        if sp.simplify(sp.expand(off)) != 0:
            return False
    return True
