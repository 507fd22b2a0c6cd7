"""Time integrators whose later rates are corrected face by face.

k_j = k_0 + Σ c_j (F(u + D_j) − F(u)) + r(u + D_j) − r(u), and k_0 = f(u) has no coefficient. The change that a later
stage makes to the flux through a face is multiplied by a coefficient c_j of that face, the same seen from either side;
reactions have no coefficients. So, whatever the coefficients are,

- what leaves a cell enters its neighbour: the total is conserved;
- states with f(u) = 0 do not change, among them constants where there is no reaction;
- the step is Δt f(u) + O(Δt²): smooth fields obey the equation itself as the mesh is refined. A coefficient of k_0
  would change the equation;
- with c_j = 1 the step is the integrator's own.

The coefficients are functions of dimensionless numbers that are symmetric in the two cells; `Fo` of a cell is Δt over
its own reference step, Σ A |∂F/∂u_P| Δt/(c V).
"""

from collections.abc import Callable, Mapping

import sympy as sp

from fluxforge.errors import EquationError
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.pde._groups import dimensionless_groups
from fluxforge.scheme._integrate import TWO_POINT, Axes, Prepared, Space, State, integrate_stages
from fluxforge.scheme._scheme import STEP, Ghost, Message, Output, Scheme, Stage
from fluxforge.scheme._tableau import Tableau, rkl2_tableau, runge_kutta
from fluxforge.scheme.fluxes import LEAST_DENOMINATOR

LOCAL = "Fo"
"""The local Fourier or Courant number of a cell, the output of `local_number_stage`."""

_EXCHANGE = "exchange"
"""Fo/Δt of a cell."""

_P, _N = symbol("T_P"), symbol("T_N")

Coefficient = Callable[[str], sp.Expr]
"""A function from the tag of a stage to its coefficient, a formula in the symbols of a face."""


def nested_tableau(stages: int) -> Tableau:
    """D_j = Δt k_{j−1}/(s − j + 1): of order s for linear equations, two for others; one stage is Euler's method."""
    rows = runge_kutta(tuple((*(0,) * j, sp.Rational(1, stages - j)) for j in range(stages)))
    # |R(z)| ≤ 1 on [−stable_to, 0] of R(z) = Σ z^k/k!.
    reach = {1: 2.0, 2: 2.0, 3: 2.512745326618329, 4: 2.785293563405282}
    summary = f"nested Runge-Kutta method of {stages} stages"
    return Tableau(f"nested-{stages}", summary, rows, order=stages, stable_to=reach.get(stages, 2.0))


def nested_rkl2(stages: int) -> Tableau:
    """Nested stages with the polynomial of RKL2: for linear equations that method itself, of order two for others.

    With coefficients of faces, these stages can represent every polynomial of their degree; the recurrences of RKL2 fix
    a part of it. R(z) = 1 + z (1 + z w_2 (1 + z w_3 (…))), w_k being ratios of the coefficients of R.
    """
    base = rkl2_tableau(stages)
    z = symbol("z")
    increments: list[sp.Expr] = [sp.S.Zero]
    for row in base.rows:
        states = (weight * increments[j] for j, weight in row.states.items())
        rates = (weight * z * (1 + increments[j]) for j, weight in row.rates.items())
        increments.append(sp.expand(sp.Add(*states, *rates)))
    powers = [sp.Poly(increments[-1], z).coeff_monomial(z**k) for k in range(1, stages + 1)]
    ratios = [powers[k] / powers[k - 1] for k in range(stages - 1, 0, -1)]
    rows = runge_kutta(tuple((*(0,) * j, weight) for j, weight in enumerate((*ratios, sp.S.One))))
    summary = f"nested stages with the polynomial of RKL2 with {stages} stages"
    return Tableau(base.name, summary, rows, order=2, stable_to=base.stable_to)


def local_number_stage(equation: Equation) -> Stage:
    """`Fo` of every cell; a ghost has its owner's. Diffusion through a Neumann wall does not count, outflow does."""
    own, both = (sp.Abs(slope) for slope in equation.slopes(_P, _N))
    chi = symbol("chi")
    message = symbol("A") * (chi * own + (1 - chi) * both)
    capacity = equation.at_cell(equation.capacity, symbol("T"))
    number = symbol("o") * symbol(STEP) / (capacity * symbol("V"))
    return Stage({"o": Message(message)}, {LOCAL: Output(number, Ghost.OWNER)})


def face_invariants(equation: Equation) -> dict[str, sp.Expr]:
    """Dimensionless numbers of a face, symmetric in P and N, as formulas of a message after `local_number_stage`.

    `total` = Fo_P + Fo_N; `contrast` = ((Fo_P − Fo_N)/total)²; `share` = the face's own number √(Fo_fP Fo_fN)/total, 0
    at a Dirichlet wall. With transport, d = (|∂F/∂u_P| − |∂F/∂u_N|)/(|∂F/∂u_P| + |∂F/∂u_N|) gives its direction and its
    strength relative to diffusion, ±1 for an upwind flux alone: `upwind` = d², if there is diffusion too, and
    `drift` = d (Fo_P − Fo_N)/total. With a reaction, its numbers r Δt (`reaction_numbers`).
    """
    here, there = symbol(f"{LOCAL}_P"), symbol(f"{LOCAL}_N")
    total = here + there
    # Without transport `total` is positive; with it, `total` is 0 where nothing flows, and the numbers are then 0.
    below = total if equation.velocity is None else total + LEAST_DENOMINATOR
    own, other = (sp.Abs(slope) for slope in _both_slopes(equation))
    mass = [equation.at_cell(equation.capacity, u, end) * symbol(f"V_{end}") for u, end in ((_P, "P"), (_N, "N"))]
    through = symbol(STEP) * symbol("A") * (own + other) / 2 / sp.sqrt(mass[0] * mass[1])
    numbers = {"total": total, "contrast": ((here - there) / below) ** 2, "share": through / below}
    if equation.velocity is not None:
        direction = (own - other) / (own + other + LEAST_DENOMINATOR)
        if equation.diffusion != 0:
            numbers["upwind"] = direction**2
        numbers["drift"] = direction * (here - there) / below
    return numbers | reaction_numbers(equation)


def reaction_numbers(equation: Equation) -> dict[str, sp.Expr]:
    """The dimensionless numbers r Δt of the reaction's parameters; an r given per cell enters as the mean of two cells.

    A reaction without parameters has the number Δt: its rate is 1 per unit of time. Raises EquationError for a
    parameter without a unit.
    """
    if equation.reaction == 0:
        return {}
    inside = {each.name for each in equation.reaction.free_symbols} - {equation.unknown}
    groups = [
        group
        for group in dimensionless_groups(equation)
        if group.step and not group.length and inside >= {*group.powers}
    ]
    numbers = [symbol(STEP) ** g.step * sp.Mul(*(_mean(equation, n) ** p for n, p in g.powers.items())) for g in groups]
    if not inside:
        numbers = [symbol(STEP)]
    return {f"reaction{k}" if len(numbers) > 1 else "reaction": each for k, each in enumerate(numbers, start=1)}


def _mean(equation: Equation, name: str) -> sp.Expr:
    if not equation.parameter(name).in_cells:
        return symbol(name)
    return (symbol(f"{name}_P") + symbol(f"{name}_N")) / 2


def _both_slopes(equation: Equation) -> tuple[sp.Expr, sp.Expr]:
    own, both = equation.slopes(_P, _N)
    return own, sp.simplify(both - own)


def refuse_flux_form(equation: Equation) -> str | None:
    """Why an equation cannot have a network in the form of a flux; None if it can.

    The flux must be linear in the unknown (the reaction may be anything), and every parameter needs a unit, since
    dimensionless numbers are formed of them.
    """
    own, both = equation.slopes(_P, _N)
    if {_P, _N} & (own.free_symbols | both.free_symbols):
        return f"the flux of equation {equation.name!r} is not linear in {equation.unknown}, as the form 'flux' is"
    try:
        dimensionless_groups(equation)
    except EquationError as error:
        return str(error)
    return None


def weighted_stages(
    tableau: Tableau, equation: Equation, coefficient: Coefficient, *, free: bool, base: Space = TWO_POINT
) -> tuple[Stage, ...]:
    """`local_number_stage`, and the stages of the corrected integrator.

    The flux is that of `base`, with a coefficient of the change that later stages make to F(u). With `free`, the
    coefficient multiplies the whole flux of every stage, the first included: an ablation, which changes the equation.
    """

    def prepare(equation: Equation, state: State, tag: str, axes: Axes) -> Prepared:
        moved = base.prepare(equation, state, tag, axes)
        if free:
            return Prepared(moved.rounds, Message(coefficient(tag) * moved.message.expression))
        if state == State():
            return moved
        # The rounds that the flux of u itself needs, such as gradients, are repeated under other names.
        plain = base.prepare(equation, State(), f"{tag}o", axes)
        first, later = plain.message.expression, moved.message.expression
        return Prepared((*plain.rounds, *moved.rounds), Message(first + coefficient(tag) * (later - first)))

    space = Space("weighted", f"{base.summary} with coefficients of the faces", prepare, axes=base.axes)
    return (local_number_stage(equation), *integrate_stages(tableau, equation, space))


def weighted_scheme(
    name: str,
    tableau: Tableau,
    equation: Equation,
    coefficient: Coefficient,
    *,
    free: bool = False,
    base: Space = TWO_POINT,
    summary: str = "",
) -> Scheme:
    """A scheme, without claims, from formulas for the coefficients; `base` is the flux that they multiply."""
    stages = weighted_stages(tableau, equation, coefficient, free=free, base=base)
    return Scheme(name, stages, summary=summary, equation=equation)


def formula_scheme(
    name: str,
    tableau: Tableau,
    equation: Equation,
    formulas: Mapping[str, sp.Expr],
    *,
    free: bool = False,
    summary: str = "",
) -> Scheme:
    """The scheme whose coefficients are formulas in the names of `face_invariants`, by the tag of their stage.

    The scheme can be evaluated at Δt = 0, where a certificate takes limits. Ratios of Fourier numbers are 0/0 there but
    do not depend on Δt: they are the same with Δt = 1 and each cell's rate of exchange in place of its Fo. `free` as in
    `weighted_stages`.
    """
    used = {each.name for formula in formulas.values() for each in formula.free_symbols}
    only_total = used <= {"total"}
    invariants = face_invariants(equation) if only_total else _finite_invariants(equation)
    numbers = {symbol(name): each for name, each in invariants.items()}
    whole = {tag: each.xreplace(numbers) for tag, each in formulas.items()}
    first, *later = weighted_stages(tableau, equation, whole.__getitem__, free=free)
    stages = (first if only_total else _exchange_stage(equation), *later)
    return Scheme(name, stages, summary=summary, equation=equation)


def _exchange_stage(equation: Equation) -> Stage:
    plain = local_number_stage(equation)
    number = plain.outputs[LOCAL].expression.xreplace({symbol(STEP): sp.S.One})
    return Stage(plain.messages, {_EXCHANGE: Output(number, Ghost.OWNER)})


def _finite_invariants(equation: Equation) -> dict[str, sp.Expr]:
    """`face_invariants` after `_exchange_stage`: the numbers that are ratios of Fo are written without Δt."""
    local = {symbol(f"{LOCAL}{end}"): symbol(f"{_EXCHANGE}{end}") for end in ("_P", "_N")}
    invariants = {}
    for name, number in face_invariants(equation).items():
        if not number.free_symbols & local.keys():
            invariants[name] = number
        elif name == "total":
            invariants[name] = symbol(STEP) * number.xreplace(local)
        else:
            invariants[name] = number.xreplace({**local, symbol(STEP): sp.S.One})
    return invariants
