"""Simplification: forms, refits, and shorter formulas."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from symbolic_tables import T_N, T_P, A, S, T, V, delta, dt, flux_table, is_flux, is_update, update_table, z

from fluxforge.distil import complexity, fit_constants, measure, simplify, tabulate
from fluxforge.distil._front import fit_scale, structure_key
from fluxforge.distil._simplify import (
    ERROR_RATIO,
    Polisher,
    collect_factors,
    list_forms,
    make_monic,
    read_back,
    shorten,
    tidy,
)
from fluxforge.distil._table import predict
from fluxforge.expression import parse

a, b, c, d = sp.symbols("a b c d", real=True)
FLUX = flux_table(error=0.01)
ABCD = tabulate("abcd", np.random.default_rng(0).uniform(0.5, 2, (60, 4)), np.arange(60.0))


def numbers(expr):
    return sorted(float(number) for number in expr.atoms(sp.Float))


def test_constants_are_pulled_out_of_brackets_until_one_term_is_bare():
    assert make_monic(2.0 * a * (3.0 * b + 6.0 * c)) == 12.0 * a * (0.5 * b + c)
    assert make_monic(a / (4.0 * b + 2.0 * c)) == 0.25 * a / (b + 0.5 * c)
    assert make_monic(a * (b + 2.0 * c)) == a * (b + 2.0 * c)
    assert make_monic(a * (2.0 * b - 2.0 * c)) == 2.0 * a * (b - c)
    assert make_monic(sp.sqrt(4.0 * a**2 - 4.0 * b)) == 2.0 * sp.sqrt(a**2 - b)
    assert make_monic(sp.sqrt(-4.0 * a - 16.0 * b)) == 4.0 * sp.sqrt(-0.25 * a - b)
    assert make_monic(sp.Abs(-3.0 * a - 6.0 * b)) == 6.0 * sp.Abs(0.5 * a + b)
    assert make_monic(sp.exp(a * (2.0 * b + 2.0 * c))) == sp.exp(2.0 * a * (b + c))


def test_common_factors_are_put_before_a_bracket_whichever_side_of_the_line():
    assert collect_factors(a * b + a * c + d) == a * (b + c) + d
    assert collect_factors(a / b + c / b) == (a + c) / b
    assert collect_factors(a * b / d - a * c / d) == a / d * (b - c)
    assert collect_factors(a + b) == a + b


LEAVES = st.sampled_from("abcd") | st.sampled_from(["0.37", "1.9", "5.25"])


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Two formulas and an operator between them."""
    return st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]}){t[1]}({t[2]})")


FORMULAS = LEAVES | joined(LEAVES) | joined(LEAVES | joined(LEAVES)) | joined(joined(LEAVES))


@settings(deadline=None, derandomize=True, max_examples=40)
@given(FORMULAS)
def test_every_form_of_a_formula_has_its_value_and_the_tidied_one_is_the_shortest(text):
    try:
        expr = parse(text, {s.name: s for s in (a, b, c, d)})
    except ValueError:
        return
    f = predict(expr, ABCD)
    if not np.all(np.isfinite(f)):
        return
    for form in (*list_forms(expr), tidy(expr)):
        np.testing.assert_allclose(predict(form, ABCD), f, rtol=1e-9, atol=1e-9 * np.max(np.abs(f)))
        assert complexity(tidy(expr)) <= complexity(form)


def test_a_product_gets_the_positive_constant():
    assert tidy(-0.3 * A / delta * (T_N - T_P)) == 0.3 * A / delta * (T_P - T_N)


def test_refitting_is_least_squares_where_the_formula_is_linear():
    X = np.random.default_rng(0).uniform(size=(50, 2))
    table = tabulate("ab", X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2)
    fit = fit_constants(1.0e-3 * a + 5.0 * b + 0.1, table)
    wanted, (residual,), *_ = np.linalg.lstsq(np.column_stack((X, np.ones(50))), table.y, rcond=None)
    np.testing.assert_allclose([float(fit.expression.coeff(s)) for s in (a, b)], wanted[:2], rtol=1e-7)
    assert fit.residual == pytest.approx(np.sqrt(residual), rel=1e-12)


def test_refitting_finds_constants_in_denominators():
    X = np.random.default_rng(0).uniform(0.5, 2, (200, 2))
    table = tabulate("ab", X, 3.0 * X[:, 0] / (X[:, 1] + 0.25))
    fit = fit_constants(2.0 * a / (b + 0.6), table)
    assert fit.residual < 1e-9
    np.testing.assert_allclose(numbers(fit.expression), [0.25, 3.0], rtol=1e-9)


def test_refitting_leaves_exact_numbers_and_equal_decimals_alone():
    X = np.random.default_rng(0).uniform(size=(50, 2))
    table = tabulate("ab", X, 0.7 * X[:, 0] - 0.5 * X[:, 1])
    tied = fit_constants(0.3 * a - 0.3 * b, table).expression
    assert tied.coeff(a) == -tied.coeff(b) > 0.5
    assert fit_constants(2 * a - b, table).expression == 2 * a - b


def test_a_formula_without_constants_is_measured_as_it_is():
    fit = fit_constants(A * T_N / delta, FLUX)
    assert fit.expression == A * T_N / delta
    assert fit.residual == pytest.approx(np.linalg.norm(FLUX.X[:, 0] * FLUX.X[:, 2] / FLUX.X[:, 1] - FLUX.y))


def test_refitting_copes_with_two_constants_that_do_the_same():
    fit = fit_constants(1.3 * A / delta * (0.9 * T_N - 0.7 * T_P), FLUX)
    assert measure(fit.expression, FLUX).error < 0.011


def test_a_hopeless_or_infinite_formula_is_not_fitted():
    assert fit_constants(0.3 * A, FLUX, largest_residual=0.1) is None
    assert fit_constants(0.3 * A / (T_N - T_N * 1.0), FLUX) is None
    assert fit_constants(sp.log(0.3 * T_N), FLUX) is None


def test_scale_and_offset_become_part_of_the_formula():
    X = np.random.default_rng(0).uniform(size=(50, 2))
    table = tabulate("ab", X, 3.0 * X[:, 0] * X[:, 1] - 0.5)
    assert measure(fit_scale(a * b, table), table).error < 1e-14


def test_structures_differ_by_more_than_the_values_of_constants():
    assert structure_key(0.3 * a - 0.7 * b) == structure_key(-1.5 * a + 0.2 * b)
    assert structure_key(0.3 * a - 0.7 * b) != structure_key(0.3 * a - 0.3 * b)
    assert structure_key(0.3 * a) != structure_key(a)


def test_steps_drop_terms_make_ones_and_tie_constants_anywhere():
    shorter = set(shorten(0.5 * a * (b + 1.9 * c)))
    assert {0.5 * a * b, 0.95 * a * c, a * (0.5 * b + c)} <= shorter
    assert 0.3 * a - 0.3 * b in set(shorten(0.3 * a - 0.31 * b)) | set(shorten(0.31 * b - 0.3 * a))
    assert a + b in set(shorten(0.9 * a + b))
    assert a - b in set(shorten(a - 1.2 * b))
    assert a + b not in set(shorten(0.5 * a + b))


def test_the_flux_is_found_in_an_engines_way_of_writing_it():
    written = 0.299 * A * T_N / delta - 0.3 * A * T_P / delta + 1e-4
    simplest = simplify(-written, FLUX)
    assert is_flux(simplest.expression)
    assert simplest.text.endswith("*A/delta*(T_P - T_N)")
    assert simplest.complexity == 9
    assert simplest.error < ERROR_RATIO * 0.01


def test_the_update_is_found_with_its_ones():
    written = 0.998 * T + 1.97 * dt * (0.51 * S + 1.01 * z / V + 0.002) - 1e-3
    simplest = simplify(written, update_table())
    assert is_update("whole")(simplest.expression)
    assert simplest.complexity == 11


def test_an_offset_that_matters_is_kept():
    table = flux_table(error=0.001)
    moved = tabulate(table.names, table.X, table.y + 0.2)
    simplest = simplify(-0.3 * A / delta * (T_N - T_P) + 0.15, moved)
    assert simplest.complexity == 11
    assert simplest.expression.as_coeff_Add()[0] == pytest.approx(0.2, abs=1e-3)


def test_a_term_that_matters_is_kept():
    X = np.random.default_rng(0).uniform(size=(300, 2))
    table = tabulate("ab", X, X[:, 0] + 0.02 * X[:, 1])
    simplest = simplify(0.99 * a + 0.03 * b + 1e-3, table)
    assert simplest.error < 1e-6
    assert simplest.complexity == 5
    assert simplest.expression.coeff(a) == 1


def test_what_lies_below_the_rounding_of_a_network_is_dropped():
    exact = flux_table(error=0.0)
    table = tabulate(exact.names, exact.X, exact.y + 1e-8 * exact.X[:, 2])
    simplest = simplify(-0.3 * A / delta * (T_N - T_P) + 2e-8 * T_N, table)
    assert is_flux(simplest.expression)


def test_no_simplification_is_beyond_the_slack():
    given = fit_constants(0.31 * A * (T_N - 0.98 * T_P) / (delta + 0.01 * A) + 0.003 * T_N, FLUX).expression
    assert simplify(given, FLUX).error <= ERROR_RATIO * measure(given, FLUX).error


def test_a_formula_that_is_not_finite_has_no_simplification():
    assert simplify(sp.log(T_N), FLUX) is None


def test_a_formula_is_what_the_parser_reads_or_nothing():
    assert read_back(sp.Float(2.0) * A, FLUX) == 2 * A
    assert read_back(sp.Float(1e-310) * A, FLUX) is None


def test_polishing_returns_what_the_parser_reads_and_no_longer_than_asked():
    raw = [0.299 * A * T_N / delta - 0.3 * A * T_P / delta + 1e-4, 0.4 * T_N, sp.log(T_P), 0.3 * T_N - 0.2 * T_P + 0.1]
    front = Polisher(FLUX).front(raw, max_complexity=8)
    assert front.candidates
    for candidate in front:
        assert candidate.complexity <= 8
        assert parse(candidate.text, {s.name: s for s in (A, delta, T_N, T_P)}) == candidate.expression
        best = fit_constants(candidate.expression, FLUX).expression
        assert candidate.error == pytest.approx(measure(best, FLUX).error, rel=1e-7)
    assert any(is_flux(candidate.expression) for candidate in Polisher(FLUX).front(raw, max_complexity=9))
