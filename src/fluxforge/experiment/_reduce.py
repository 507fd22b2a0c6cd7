"""Reduction of a flux to a function of few numbers; each step needs a property that was confirmed for the network."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import sympy as sp

from fluxforge.experiment._properties import Check, Probe, logarithmic_slopes
from fluxforge.experiment._setup import Experiment, Form, Term, Variable, whole_form
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import differentiate
from fluxforge.pde._parameter import Unit

# Slopes count as parallel if their scatter around one direction is below this fraction of their size. It is large since
# the errors of a network's slopes are several times those of its values; the form is tested again on the data.
LARGEST_SCATTER = 0.2
# Scatters that differ by less count as equal.
_SCATTER_TOLERANCE = 0.02
# Exponents with which several groups may be joined to one.
_POWERS = tuple(Fraction(p, q) for q in (1, 2) for p in range(-3 * q, 3 * q + 1))


@dataclass(frozen=True)
class Reduced:
    """A form of the flux, and all checks that were made; those that it relies on are marked as used."""

    form: Form
    checks: tuple[Check, ...]


def reduce_flux(probe: Probe) -> Reduced:
    """The form in which g has the fewest arguments that the network's properties allow."""
    experiment = probe.experiment
    exchange, linear, equal, units = probe.exchange(), probe.linearity(), probe.equal_states(), probe.units()
    used: dict[str, Check] = {}

    def use(*checks: Check) -> bool:
        if not all(check.holds for check in checks):
            return False
        used.update({check.name: check for check in checks})
        return True

    form, extra = whole_form(experiment), []
    if use(linear, exchange, equal) if experiment.velocity is None else use(linear, exchange):
        form = _linear_form(experiment)
    if len(form.names) > 1 and units.holds:
        rescaled, more = _scale(probe, form, exchange, equal if linear.holds else None)
        extra += more
        if rescaled is not None:
            # A second term relies on the exchange of the cells, an offset on the flux between equal states.
            use(units, *((exchange,) if len(rescaled.terms) > 1 else ()), *((equal,) if rescaled.offset != 0 else ()))
            form = rescaled
    centre = None if linear.holds else _critical_point(experiment)
    if centre is not None:
        check = probe.homogeneity(float(centre))
        centred = _centre(experiment, form, centre) if check.holds else None
        extra.append(replace(check, used=centred is not None))
        form = centred or form
    checks = (exchange, linear, equal, units)
    return Reduced(form, (*(replace(check, used=check.name in used) for check in checks), *extra))


def _critical_point(experiment: Experiment) -> sp.Expr | None:
    """The one real state where f′ = 0; None where there is none, or several."""
    equation = experiment.equation
    points = [each for each in sp.solve(differentiate(equation.transported, equation.u), equation.u) if each.is_real]
    return points[0] if len(points) == 1 else None


def _centre(experiment: Experiment, form: Form, centre: sp.Expr) -> Form | None:
    """The form with states relative to a centre c, and the flux relative to f(c) a·n; None if that changes nothing."""
    velocity, states = experiment.velocity, [each.name for each in experiment.states]
    if centre == 0 or velocity is None or list(form.names) != states or len(form.terms) != 2:
        return None
    equation = experiment.equation
    terms = tuple(Term(term.weight, tuple(column - centre for column in term.columns)) for term in form.terms)
    offset = velocity.symbol * equation.transported.subs(equation.u, centre)
    return Form(("v_P", "v_N"), terms, form.positive, offset)


def _linear_form(experiment: Experiment) -> Form:
    """(u_P − u_N) g without transport; u_P g(P, N, a) − u_N g(N, P, −a) with it."""
    P, N = (each.symbol for each in experiment.states)
    rest = experiment.variables[2:]
    names, positive = tuple(each.name for each in rest), tuple(each.positive for each in rest)
    columns = tuple(each.symbol for each in rest)
    if experiment.velocity is None:
        return Form(names, (Term(P - N, columns),), positive)
    swapped = tuple(experiment.exchange_formula(each) for each in columns)
    return Form(names, (Term(P, columns), Term(-N, swapped)), positive)


def _scale(probe: Probe, form: Form, exchange: Check, equal: Check | None) -> tuple[Form | None, list[Check]]:
    """The form in dimensionless numbers, and further checks; None if no scale is found.

    Scales are two positive variables whose units span length and time, or else a·n.
    """
    experiment = probe.experiment
    by_name = {each.name: each for each in experiment.variables}
    bases = list(_bases([by_name[name] for name in form.names]))
    if bases:
        forms = [_group_by_units(experiment, form, base) for base in bases]
        if experiment.velocity is None and len(forms[0].names) > 1:
            return _join(probe, form, bases, forms)
        halved = None
        if equal is not None and equal.holds and len(form.terms) == 2:
            halved = _positive_velocity(experiment, forms[0], bases[0])
        return halved or forms[0], []
    velocity = experiment.velocity
    if velocity is None or velocity.name not in form.names or not exchange.holds:
        return None, []
    return _split_by_sign(experiment, form, velocity), []


def _bases(variables: list[Variable]) -> Iterator[tuple[Variable, Variable]]:
    """Pairs of positive variables in whose powers every length and time can be written."""
    for pair in combinations([each for each in variables if each.positive], 2):
        matrix = sp.Matrix([[each.unit.length, each.unit.time] for each in pair])
        if matrix.det() != 0:
            yield pair


def _monomial(base: tuple[Variable, Variable], unit: Unit) -> sp.Expr:
    """The product of powers of the two base variables that has this unit of length and time."""
    matrix = sp.Matrix([[_rational(each.unit.length), _rational(each.unit.time)] for each in base]).T
    powers = matrix.solve(sp.Matrix([_rational(unit.length), _rational(unit.time)]))
    return sp.Mul(*(each.symbol**power for each, power in zip(base, powers, strict=True)))


def _rational(value: Fraction) -> sp.Rational:
    return sp.Rational(value.numerator, value.denominator)


def _group_by_units(experiment: Experiment, form: Form, base: tuple[Variable, Variable]) -> Form:
    """The form with columns divided, and weights multiplied, by products of powers of the base of the same unit.

    The weights are multiplied by that with the unit of the flux.
    """
    by_name = {each.name: each for each in experiment.variables}
    kept = [by_name[name] for name in form.names if by_name[name] not in base]
    scale = _monomial(base, experiment.unit)
    groups = [each.symbol / _monomial(base, each.unit) for each in kept]
    terms = []
    for k, term in enumerate(form.terms):
        back = experiment.exchange_formula if k else (lambda formula: formula)
        terms.append(Term(term.weight * back(scale), tuple(back(group) for group in groups)))
    names = tuple(f"q{k}" if len(kept) > 1 else "q" for k in range(1, len(kept) + 1))
    return Form(names, tuple(terms), tuple(each.positive for each in kept))


def _positive_velocity(experiment: Experiment, form: Form, base: tuple[Variable, Variable]) -> Form | None:
    """F = ½ a·n (u_P + u_N) + (s g(q) − ½ |a·n|)(u_P − u_N), with q of |a·n|: g is needed for one sign only.

    From F(u, u) = a·n u and F(N, P, −a) = −F(P, N, a), where g s is the coefficient of u_P for a·n > 0. Needs base
    variables that do not change with the cells, and f(u) = u.
    """
    velocity, equation = experiment.velocity, experiment.equation
    assert velocity is not None
    if equation.transported != equation.u or any(each.partner != each.name for each in experiment.variables[2:]):
        return None
    P, N = (each.symbol for each in experiment.states)
    a, size = velocity.symbol, sp.Abs(velocity.symbol)
    scale = _monomial(base, experiment.unit)
    columns = tuple(column.subs(a, size) for column in form.terms[0].columns)
    offset = a * (P + N) / 2 - size * (P - N) / 2
    return Form(form.names, (Term(scale * (P - N), columns),), form.positive, offset)


def _split_by_sign(experiment: Experiment, form: Form, velocity: Variable) -> Form:
    """F = max(a·n, 0) g(P, N) + min(a·n, 0) g(N, P), from units and the exchange of the cells."""
    a = velocity.symbol
    kept = [each for each in experiment.variables if each.name in form.names and each is not velocity]
    if len(form.terms) > 1 or any(each.unit.time or each.unit.length for each in kept):
        return form
    there = tuple(symbol(each.partner) for each in kept)
    terms = (Term(sp.Max(a, 0), tuple(each.symbol for each in kept)), Term(sp.Min(a, 0), there))
    return Form(tuple(each.name for each in kept), terms, tuple(each.positive for each in kept))


def _join(
    probe: Probe, form: Form, bases: list[tuple[Variable, Variable]], forms: list[Form]
) -> tuple[Form, list[Check]]:
    """The form with one product of the groups as the only argument, if the slopes of log g along them are parallel.

    Otherwise the first of `forms`; with the check, in either case.
    """
    tried = []
    for base, grouped in zip(bases, forms, strict=True):
        names = tuple(name for name in form.names if name not in {each.name for each in base})
        slopes = logarithmic_slopes(probe, names)
        direction = np.linalg.svd(slopes, full_matrices=False)[2][0]
        direction = direction / np.abs(direction).max() * (1 if direction[-1] > 0 else -1)
        powers = [min(_POWERS, key=lambda power, d=d: abs(float(power) - d)) for d in direction]  # type: ignore[misc]
        along = np.array([float(power) for power in powers])
        along /= np.linalg.norm(along)
        across = slopes - np.outer(slopes @ along, along)
        tried.append((float(np.linalg.norm(across) / np.linalg.norm(slopes)), base, grouped, powers))
    # By symmetry there are two such scales, that of P and that of N: the first is taken.
    least = min(each[0] for each in tried)
    scatter, base, grouped, powers = next(each for each in tried if each[0] <= 2 * least + _SCATTER_TOLERANCE)
    (term,) = grouped.terms
    joined = sp.Mul(*(g ** _rational(power) for g, power in zip(term.columns, powers, strict=True)))
    words = f"with the scale {_monomial(base, probe.experiment.unit)}, only {joined} matters"
    check = Check("one number", words, scatter, LARGEST_SCATTER, used=scatter <= LARGEST_SCATTER)
    if not check.holds:
        return forms[0], [check]
    return Form(("q",), (Term(term.weight, (joined,)),), (True,)), [check]
