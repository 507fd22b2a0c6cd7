"""Time integrators whose later rates are corrected face by face: k_j = k_0 + Σ c_j (F(u + D_j) − F(u)).

k_0 = f(u) is taken as it is. What a later stage adds to it passes through each face times a coefficient c_j of that
face, the same seen from either side. So, whatever the coefficients are,

- what leaves a cell enters its neighbour: the total is conserved;
- states with f(u) = 0 stay, constants among them;
- the step is Δt f(u) + O(Δt²): smooth fields obey the equation itself as the mesh is refined. A coefficient before k_0
  would change the equation;
- with c_j = 1 the step is the integrator's own.

The coefficients see dimensionless numbers that are symmetric in the two cells; `Fo` of a cell is Δt over its own
reference step, Σ A |∂F/∂u_P| Δt/(c V).
"""

from collections.abc import Callable

import sympy as sp

from fluxforge.expression import symbol
from fluxforge.pde import Equation
from fluxforge.scheme._integrate import TWO_POINT, Prepared, Space, State, Tableau, integrate_stages, runge_kutta
from fluxforge.scheme._scheme import Message, Output, Scheme, Stage
from fluxforge.scheme._symbols import STEP, Ghost

LOCAL = "Fo"
"""The local Fourier or Courant number of a cell, the output of `local_number_stage`."""

_P, _N = symbol("T_P"), symbol("T_N")

Coefficient = Callable[[str], sp.Expr]
"""The coefficient of a stage, by the tag of that stage: a formula of what a face has."""


def nested_tableau(stages: int) -> Tableau:
    """D_j = Δt k_{j−1}/(s − j + 1): of order s for linear equations, two for others; one stage is Euler's method."""
    rows = runge_kutta(tuple((*(0,) * j, sp.Rational(1, stages - j)) for j in range(stages)))
    # |R(z)| ≤ 1 on [−stable_to, 0] of R(z) = Σ z^k/k!.
    reach = {1: 2.0, 2: 2.0, 3: 2.512745326618329, 4: 2.785293563405282}
    summary = f"nested Runge-Kutta method of {stages} stages"
    return Tableau(f"nested-{stages}", summary, rows, order=stages, stable_to=reach.get(stages, 2.0))


def local_number_stage(equation: Equation) -> Stage:
    """`Fo` of every cell; a ghost shows its owner's. Diffusion through a Neumann wall does not count, outflow does."""
    own, both = (sp.Abs(slope) for slope in equation.slopes(_P, _N))
    chi = symbol("chi")
    message = symbol("A") * (chi * own + (1 - chi) * both)
    capacity = equation.at_cell(equation.capacity, symbol("T"))
    number = symbol("o") * symbol(STEP) / (capacity * symbol("V"))
    return Stage({"o": Message(message)}, {LOCAL: Output(number, Ghost.OWNER)})


def face_invariants(equation: Equation) -> dict[str, sp.Expr]:
    """Dimensionless numbers of a face, symmetric in P and N, as formulas of a message after `local_number_stage`.

    `total` = Fo_P + Fo_N; `contrast` = ((Fo_P − Fo_N)/total)²; `share` = the face's own number √(Fo_fP Fo_fN)/total, 0
    at a wall that holds its value.
    """
    here, there = symbol(f"{LOCAL}_P"), symbol(f"{LOCAL}_N")
    total = here + there
    own, other = (sp.Abs(slope) for slope in _both_slopes(equation))
    mass = [equation.at_cell(equation.capacity, u, end) * symbol(f"V_{end}") for u, end in ((_P, "P"), (_N, "N"))]
    through = symbol(STEP) * symbol("A") * (own + other) / 2 / sp.sqrt(mass[0] * mass[1])
    return {"total": total, "contrast": ((here - there) / total) ** 2, "share": through / total}


def _both_slopes(equation: Equation) -> tuple[sp.Expr, sp.Expr]:
    own, both = equation.slopes(_P, _N)
    return own, sp.simplify(both - own)


def weighted_space(coefficient: Coefficient) -> Space:
    """The two-point flux with a coefficient before what later stages add to F(u)."""

    def prepare(equation: Equation, state: State, tag: str) -> Prepared:
        plain = TWO_POINT.prepare(equation, State(), tag).message.expression
        if state == State():
            return Prepared((), Message(plain))
        moved = TWO_POINT.prepare(equation, state, tag).message.expression
        return Prepared((), Message(plain + coefficient(tag) * (moved - plain)))

    return Space("weighted", "two-point flux with coefficients of the faces", prepare)


def weighted_stages(tableau: Tableau, equation: Equation, coefficient: Coefficient) -> tuple[Stage, ...]:
    """The stages of the corrected integrator, after the one that gives each cell its `Fo`."""
    return (local_number_stage(equation), *integrate_stages(tableau, equation, weighted_space(coefficient)))


def weighted_scheme(
    name: str, tableau: Tableau, equation: Equation, coefficient: Coefficient, *, summary: str = ""
) -> Scheme:
    """A scheme of formulas for the coefficients; it claims nothing."""
    return Scheme(name, weighted_stages(tableau, equation, coefficient), summary=summary, equation=equation)
