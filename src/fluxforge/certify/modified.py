"""The modified equation on regular lattices, by exact Taylor expansion: T_t = K ∂²T + h² C ∂⁴T + …

A linear scheme is evaluated on the lattice with shifts for fields: each output is Σ c · T(x + o) over cell types and
offsets o. The generator's symbol, c e^{ik·o} summed, is a small matrix; its eigenvalue that belongs to constants,
expanded in k, is the equation that smooth solutions obey as Δt → 0. For a scheme that is a function R of one operator,
log R(Δt λ)/Δt is the one they obey at Δt: it is reported for equations with transport, whose numerical diffusion
depends on Δt.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

import sympy as sp

from fluxforge.certify._equations import ModifiedEquation
from fluxforge.certify._evidence import Line, Verdict, verdict_of
from fluxforge.certify._lattice import Lattice, Shifts, make_lattice, step_on_lattice
from fluxforge.certify.effective import own_derivatives, wave_symbols
from fluxforge.errors import NumericalError
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.scheme._document import find
from fluxforge.scheme._linear import amplification, linear_stages
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._limit import is_one_operator

EPS = symbol("epsilon")
DT = symbol("dt")
# The expansion ends with this power of k. With transport the first error is of second or third order.
HIGHEST, HIGHEST_OF_TRANSPORT = 4, 3
MOST_OPERATIONS = 60  # in a coefficient on the lattice; those of the built-in schemes have up to 11


@lru_cache(maxsize=64)  # a third of the time of a quick certificate; `is_own_symbolically` asks for Euler's each time
def modified_equation(scheme: Scheme, name: str) -> ModifiedEquation | None:
    """Leading terms and first error term on a lattice: `squares`, `equilateral` triangles or `cubes` of side h.

    None if the scheme is not linear or does not preserve constants there.

    Raises NumericalError for formulas that would take too long, or have no expansion in h, and InputError for another
    lattice.
    """
    if linear_stages(scheme) is None:
        return None
    _refuse_transcendental(scheme)
    lattice = make_lattice(name)
    step = step_on_lattice(scheme, lattice)
    assert step is not None
    _refuse_long(c.coeff(DT, 1) for shifts in step for c in shifts.values())
    slope = tuple({key: sp.simplify(_replace_extrema(c.coeff(DT, 1))) for key, c in shifts.items()} for shifts in step)
    highest = HIGHEST if scheme.equation.velocity is None else HIGHEST_OF_TRANSPORT
    try:
        largest = _largest_number(c for shifts in slope for c in shifts.values())
        eigenvalue = _eigenvalue(_symbol_matrix(slope, highest), scheme.equation, highest, largest)
        return None if eigenvalue is None else _make_equation(scheme, lattice, eigenvalue, highest)
    except sp.PolynomialError as error:
        raise NumericalError(f"its coefficients have no expansion in h ({error})") from error


def _replace_extrema(coefficient: sp.Expr) -> sp.Expr:
    """max(x, 0) → (x + |x|)/2, min(x, 0) → (x − |x|)/2: SymPy does not see that max(x, 0) − max(−x, 0) is x."""

    def rewrite(extreme: sp.Expr) -> sp.Expr:
        (x,) = (part for part in extreme.args if part != 0)
        return (x + (1 if isinstance(extreme, sp.Max) else -1) * sp.Abs(x)) / 2

    return coefficient.replace(
        lambda part: isinstance(part, sp.Min | sp.Max) and len(part.args) == 2 and 0 in part.args, rewrite
    )


def _refuse_long(coefficients: Iterable[sp.Expr]) -> None:
    """Raise NumericalError for long polynomials in h and the parameters, whose quotients may take hours to simplify."""
    if (most := max((int(sp.count_ops(c)) for c in coefficients), default=0)) > MOST_OPERATIONS:
        raise NumericalError(f"not attempted: a coefficient on the lattice has {most} operations")


def _refuse_transcendental(scheme: Scheme) -> None:
    """Raise NumericalError for functions such as sin(h), which may take hours to simplify."""
    for part in scheme.formulas():
        for function in part.atoms(sp.Function):
            if not isinstance(function, sp.Abs | sp.Min | sp.Max):
                raise NumericalError(f"not attempted: {to_text(function)} is not an algebraic function of the geometry")


def is_own_symbolically(scheme: Scheme, modified: Mapping[str, ModifiedEquation]) -> bool | None:
    """Whether each modified equation has the limit of the equation, or of its two-point flux, for all parameters.

    None if no modified equation is known. The limit of the two-point flux is accepted because that of a tensor, which
    schemes claim, is not consistent on every lattice.
    """
    if not modified:
        return None
    for name, equation in modified.items():
        if equation.consistent:
            continue
        plain = modified_equation(find("euler", scheme.equation), name)
        if plain is None or not equation.has_limit_of(plain):
            return False
    return True


def choose_lattices(equation: Equation, dimension: int) -> tuple[str, ...]:
    """The lattices on which the modified equation is derived; with transport, not those of several types of cells.

    There the eigenvalue is a root of a polynomial in many moduli of velocities, which takes minutes; drift and K on
    them are measured by `effective_equation`.
    """
    if dimension == 3:
        return ("cubes",)
    return ("squares", "equilateral") if equation.velocity is None else ("squares",)


def _symbol_matrix(slope: tuple[Shifts, ...], highest: int) -> sp.Matrix:
    """Σ c e^{iεk·o}, expanded in ε."""
    size = len(slope)
    matrix = sp.zeros(size, size)
    for kind, shifts in enumerate(slope):
        for (other, o), c in shifts.items():
            phase = sp.I * EPS * sp.Add(*(k * part for k, part in zip(wave_symbols(len(o)), o, strict=True)))
            matrix[kind, other] += c * sp.Add(*(phase**k / sp.factorial(k) for k in range(highest + 1)))
    return matrix.applyfunc(sp.expand)


def _eigenvalue(matrix: sp.Matrix, equation: Equation, highest: int, largest: float) -> sp.Expr | None:
    """The eigenvalue that belongs to constants, to that order in ε, for up to two types of cells.

    None if constants are not an eigenvector at k = 0, or change although the equation has no reaction. With two types,
    the eigenvalue minus its rate at k = 0 solves λ = det/(tr − λ), which is iterated.
    """
    rates = {_sum_of_constants(sp.Add(*row).subs(EPS, 0), largest) for row in matrix.tolist()}
    if len(rates) > 1:
        return None
    (rate,) = rates
    if rate != 0 and sp.diff(equation.reaction, equation.u) == 0:
        return None
    if matrix.shape == (1, 1):
        eigenvalue = _truncate_series(matrix[0, 0], highest)
        return eigenvalue if rate != 0 else sp.expand(eigenvalue - eigenvalue.subs(EPS, 0))
    matrix = matrix - rate * sp.eye(len(matrix.tolist()))
    trace, determinant = sp.expand(matrix.trace()), sp.expand(matrix.det())
    if trace.subs(EPS, 0) == 0 or sp.simplify(determinant.subs(EPS, 0)) != 0:
        return None
    eigenvalue = sp.Integer(0)
    for _ in range(highest - 1):
        eigenvalue = _truncate_series(determinant * _inverse(sp.expand(trace - eigenvalue), highest), highest)
    return _truncate_series(eigenvalue, highest) + rate


def _sum_of_constants(total: sp.Expr, largest: float) -> sp.Expr:
    """The sum, simplified; 0 if it is round-off of decimals in terms with numbers up to `largest`."""
    total = sp.simplify(total)
    return sp.S.Zero if total.has(sp.Float) and _largest_number([total]) <= 1e-12 * largest else total


def _largest_number(parts: Iterable[sp.Expr]) -> float:
    numbers = (number for part in parts for number in sp.expand(part).as_coefficients_dict().values())
    return max((abs(float(number)) for number in numbers), default=0.0)


def _truncate_series(expression: sp.Expr, highest: int) -> sp.Expr:
    polynomial = sp.Poly(sp.expand(expression), EPS)
    return sp.Add(*(c * EPS**k for (k,), c in polynomial.terms() if k <= highest))


def _inverse(expression: sp.Expr, highest: int) -> sp.Expr:
    """1/expression as a power series in ε; its constant term is not zero."""
    base = expression.subs(EPS, 0)
    rest = _truncate_series(expression / base - 1, highest)
    total, power = sp.Integer(1), sp.Integer(1)
    for _ in range(highest):
        power = _truncate_series(-power * rest, highest)
        total += power
    return _truncate_series(total / base, highest)


def _eigenvalue_of_step(scheme: Scheme, eigenvalue: sp.Expr, highest: int) -> sp.Expr | None:
    """The series of log R(Δt λ)/Δt to the same order, if λ vanishes with ε; None otherwise, or if no R is known."""
    factor = amplification(scheme) if is_one_operator(scheme) else None
    if factor is None or not factor.free_symbols or sp.simplify(eigenvalue.subs(EPS, 0)) != 0:
        return None
    (z,) = factor.free_symbols
    powers = sp.Poly(sp.series(sp.log(factor), z, 0, highest + 1).removeO(), z)
    total = sp.Integer(0)
    for k in range(1, highest + 1):
        total += powers.coeff_monomial(z**k) * DT ** (k - 1) * _power(eigenvalue, k, highest)
    return sp.expand(total)


def _power(expression: sp.Expr, k: int, highest: int) -> sp.Expr:
    power = sp.Integer(1)
    for _ in range(k):
        power = _truncate_series(power * expression, highest)
    return power


def _make_equation(scheme: Scheme, lattice: Lattice, eigenvalue: sp.Expr, highest: int) -> ModifiedEquation:
    """Terms of orders 0 to 2 and, if these are the equation's, of the first order beyond that occurs.

    For diffusion alone, terms up to the fourth order.
    """
    at_step, without_dt = None, ""
    if scheme.equation.velocity is not None:
        at_step = _eigenvalue_of_step(scheme, eigenvalue, highest)
        without_dt = "" if at_step is not None else _missing_dt(scheme)
    terms = _derivatives(eigenvalue if at_step is None else at_step, lattice.dimension)
    wanted = own_derivatives(scheme.equation, lattice.dimension, lattice.values(scheme.equation))
    if scheme.equation.only_diffuses:
        error = terms.get(1, {}) | terms.get(3, {}) | terms.get(4, {})
        return ModifiedEquation(lattice.name, terms.get(2, {}), error, wanted)
    leading = terms.get(0, {}) | terms.get(1, {}) | terms.get(2, {})
    exact = not any(sp.simplify(leading.get(key, 0) - wanted.get(key, 0)) != 0 for key in {*leading, *wanted})
    error = next((terms[k] for k in range(3, highest + 1) if k in terms), {}) if exact else {}
    return ModifiedEquation(lattice.name, leading, error, wanted, at_step is not None, without_dt)


def _missing_dt(scheme: Scheme) -> str:
    """Why the modified equation has no terms with Δt."""
    if is_one_operator(scheme):
        return "terms with Δt are not derived where constants change"
    return "the step is not known to be a function of one operator, whose R(z) would give the terms with Δt"


def _derivatives(eigenvalue: sp.Expr, dimension: int) -> dict[int, dict[tuple[int, ...], sp.Expr]]:
    """Coefficients by the orders of derivatives: that of kx^a ky^b is multiplied by (−i)^{a+b}, since ∂ is ik."""
    by_order: dict[int, dict[tuple[int, ...], sp.Expr]] = defaultdict(dict)
    polynomial = sp.Poly(sp.expand(eigenvalue.subs(EPS, 1)), *wave_symbols(dimension))
    for powers, c in polynomial.terms():
        value = sp.simplify(c * (-sp.I) ** sum(powers))
        if value != 0:
            by_order[sum(powers)][powers] = value
    return by_order


def modified_line(name: str, equation: ModifiedEquation, *, heat: bool = True) -> Line:
    """The modified equation on a lattice; for equations other than heat, whether its limit is the equation."""
    method = "exact Taylor expansion of the symbol"
    if heat:
        return Line(f"modified equation, {name}", Verdict.MEASURED, str(equation), method)
    left = "the equation itself" if equation.consistent else "another equation"
    evidence = f"{equation}; {left} as h{' and Δt go' if equation.dt_terms else ' goes'} to 0"
    evidence += f"; this is the limit Δt → 0 only: {equation.without_dt}" if equation.without_dt else ""
    method += " and of log R" if equation.dt_terms else ", Δt → 0"
    return Line(f"modified equation, {name}", verdict_of(equation.consistent), evidence, method)
