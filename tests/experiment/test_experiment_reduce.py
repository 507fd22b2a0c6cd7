"""Reductions on networks whose flux is known, formulas fitted to data, and their comparison with others."""

import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
import sympy as sp
from sympy.core.cache import clear_cache

from fluxforge import recipe
from fluxforge.certify.modified import modified_equation
from fluxforge.distil import put_numbers
from fluxforge.distil._front import bounded_exponential
from fluxforge.errors import NumericalError
from fluxforge.experiment import (
    Probe,
    compare_flux,
    design_experiment,
    fit_formula,
    make_dataset,
    make_scheme,
    reduce_flux,
)
from fluxforge.experiment._fit import judge_formula, normalise_extremes
from fluxforge.experiment._scheme import guard_formula, simplify_flux
from fluxforge.experiment._setup import parse_flux
from fluxforge.expression import evaluate, parse, symbol, to_text
from fluxforge.scheme import find


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FLUXFORGE_CACHE", str(tmp_path / "cache"))


def spec(equation, law=None, **data):
    return recipe.Recipe(
        name="test",
        equation=equation,
        data=recipe.Experiment(**{"samples": 500, "law": law, **data}),
        loss=recipe.Loss(supervised=recipe.Supervised()),
        search=recipe.Search(),
    )


@dataclass(frozen=True)
class Known:
    """A formula in the place of a network that errs by 1 %."""

    formula: sp.Expr
    error: float = 0.01

    def __call__(self, samples):
        return (
            evaluate(self.formula, {symbol(name): each for name, each in samples.items()}, np)
            + 0 * samples[next(iter(samples))]
        )


def reduced(equation, law, **data):
    recipe_of_law = spec(equation, law, **data)
    experiment = design_experiment(recipe_of_law)
    size = float(np.sqrt(np.mean(make_dataset(recipe_of_law).flux ** 2)))
    probe = Probe(experiment, Known(parse_flux(law, experiment)), size, np.random.default_rng(0))
    return reduce_flux(probe)


SERIES = "(T_P - T_N)/(d_P/k_P + d_N/k_N)"
UPWIND = "max(velocity_n, 0)*u_P + min(velocity_n, 0)*u_N"
LAYER = "velocity_n*(u_P/(1 - exp(-velocity_n*delta/D)) + u_N/(1 - exp(velocity_n*delta/D)))"
STEADY = {"jump": False, "peclet": 20.0}


def used(reduction):
    return {check.name for check in reduction.checks if check.used}


def test_resistances_reduce_to_one_number():
    reduction = reduced("conduction", SERIES)
    assert used(reduction) == {"exchange", "linearity", "limit", "units", "one number"}
    assert reduction.form.names == ("q",)
    F = reduction.form.compose(parse("1/(1 + q)", ["q"]))
    assert sp.simplify(F - parse(SERIES, {each.name: each for each in F.free_symbols})) == 0


def test_an_arithmetic_mean_does_not_reduce_to_one_number():
    reduction = reduced("conduction", "(k_P + k_N)/2*(T_P - T_N)/(d_P + d_N)")
    (check,) = (each for each in reduction.checks if each.name == "one number")
    assert not check.holds
    assert len(reduction.form.names) == 2


def test_a_flux_that_is_not_antisymmetric_is_not_taken_as_one():
    reduction = reduced("conduction", "(T_P - T_N)/(d_P/k_P + d_N/k_N)*(1 + 0.3*d_P/(d_P + d_N))")
    assert "exchange" not in used(reduction)
    assert reduction.form.names == ("T_P", "T_N", "k_P", "k_N", "d_P", "d_N") or len(reduction.form.terms) == 1


def test_upwind_reduces_to_a_function_of_the_velocity():
    reduction = reduced("advection", UPWIND)
    assert reduction.form.names == ("velocity_n",)
    F = reduction.form.compose(parse("max(velocity_n, 0)", ["velocity_n"]))
    experiment = design_experiment(spec("advection"))
    assert compare_flux(F, UPWIND, experiment).same


def test_steady_transport_reduces_to_a_positive_peclet_number():
    reduction = reduced("advection-diffusion", LAYER, **STEADY)
    assert reduction.form.names == ("q",)
    assert reduction.form.offset != 0
    experiment = design_experiment(spec("advection-diffusion", **STEADY))
    F = reduction.form.compose(parse("q/(1 - exp(-q))", ["q"]))
    same = compare_flux(F, LAYER, experiment)
    assert same.same, same


@pytest.mark.parametrize(
    ("equation", "g"), [("burgers", "max(u_P, -u_N, 0)**2/2"), ("traffic", "-max(-v_P, v_N, 0)**2")]
)
def test_riemann_problems_reduce_to_positive_directions(equation, g):
    reduction = reduced(equation, "godunov")
    names = reduction.form.names
    nested = g.replace("max(u_P, -u_N, 0)", "max(max(u_P, -u_N), 0)").replace(
        "max(-v_P, v_N, 0)", "max(max(-v_P, v_N), 0)"
    )
    same = compare_flux(reduction.form.compose(parse(nested, names)), "godunov", design_experiment(spec(equation)))
    assert same.same
    assert same.method.startswith("algebra")


def test_constants_are_rounded_where_the_data_allow_it():
    data = make_dataset(spec("conduction"))
    form = reduced("conduction", SERIES).form
    fitted = fit_formula(parse("1.01/(q + 0.98)", ["q"]), form, data)
    assert fitted is not None
    assert fitted.agrees
    assert to_text(fitted.g) == "1/(q + 1)"
    assert to_text(simplify_flux(fitted.flux)) == "-k_N*k_P/(d_N*k_P + d_P*k_N)*(T_N - T_P)"


def test_two_percent_of_another_flux_are_not_rounded_away():
    """Upwind with 2 % of a central flux: its constants are found, and they are not those of upwind."""
    law = f"0.98*({UPWIND}) + 0.02*velocity_n*(u_P + u_N)/2"
    data = make_dataset(spec("advection", law))
    form = reduced("advection", law).form
    fitted = fit_formula(parse("1.01*max(velocity_n, 0) + 0.001*velocity_n", ["velocity_n"]), form, data)
    assert fitted is not None
    assert fitted.agrees
    comparison = compare_flux(fitted.flux, UPWIND, data.experiment)
    assert not comparison.same
    # 0.01 a (u_N − u_P) at most, of a flux of 1.
    assert 5e-3 < comparison.difference < 3e-2
    wrong = fit_formula(parse("max(velocity_n, 0)", ["velocity_n"]), form, data)
    assert wrong is not None
    assert not wrong.agrees


def test_errors_that_are_small_by_chance_do_not_speak_against_the_law():
    exact = make_dataset(spec("advection", UPWIND))
    rng = np.random.default_rng(0)
    error = 1e-4 * exact.size * rng.uniform(0.5, 1.5, len(exact))
    error[::20] *= 1e-4  # one in twenty
    off = np.where(np.arange(len(exact)) % 20 == 0, 5e-6 * exact.size, error * rng.uniform(-1, 1, len(exact)))
    data = replace(exact, flux=exact.flux + off, error=error)
    form = reduced("advection", UPWIND).form
    # Twenty times the least error that is taken for one, in the same samples.
    for formula, agrees in (("max(velocity_n, 0)", True), ("max(velocity_n, 0.005*velocity_n)", False)):
        assert judge_formula(parse(formula, ["velocity_n"]), form, data).agrees is agrees
    shorter = fit_formula(parse("max(velocity_n, 0.00003*velocity_n)", ["velocity_n"]), form, data)
    assert shorter is not None
    assert to_text(shorter.g) == "max(0, velocity_n)"


def test_a_formula_that_is_not_the_law_does_not_agree():
    data = make_dataset(spec("conduction"))
    form = reduced("conduction", SERIES).form
    wrong = fit_formula(parse("0.5 + 0.1*q", ["q"]), form, data)
    assert wrong is not None
    assert not wrong.agrees
    assert wrong.error > 0.05


def test_exponentials_of_large_numbers_end_with_double_precision(monkeypatch):
    """SymPy would take hours for exp(-exp(1e9)), which is 0 in double precision."""
    evaluate_exponential = sp.exp.eval

    def bounded(argument):
        assert not argument.is_Float or abs(argument) <= sys.float_info.max
        return evaluate_exponential(argument)

    # SymPy calls `eval` before it computes any digit, unless the value is in its cache.
    clear_cache()
    monkeypatch.setattr(sp.exp, "eval", bounded)
    c, x = symbol("c"), symbol("x")
    formula = sp.exp(-sp.exp(c)) + sp.exp(x * c)
    assert put_numbers(formula, {c: sp.Float(1e9)}) == sp.exp(-700.0) + sp.exp(1e9 * x)
    assert put_numbers(formula, {c: sp.Float(0.5)}) == formula.xreplace({c: sp.Float(0.5)})
    data = make_dataset(spec("conduction"))
    fit_formula(
        sp.exp(-bounded_exponential(sp.Float(1e7))) + sp.exp(-sp.exp(1e3 * symbol("q"))),
        reduced("conduction", SERIES).form,
        data,
    )


def test_numbers_before_and_in_an_extreme_are_told_apart():
    g = parse("0.5*max(2.2*x, 3.3*y)**2", ["x", "y"])
    point = {symbol("x"): 0.7, symbol("y"): 0.3}
    normal = normalise_extremes(g)
    assert float(normal.subs(point)) == pytest.approx(float(g.subs(point)), rel=1e-14)
    assert symbol("y") in next(iter(normal.atoms(sp.Max))).args


def test_a_formula_that_is_0_over_0_is_guarded():
    g, guarded = guard_formula(parse("q/(1 - exp(-q))", ["q"]), ("q",))
    assert guarded
    assert evaluate(g, {symbol("q"): 0.0}, np) == pytest.approx(1.0, abs=1e-5)
    assert not guard_formula(parse("1/(1 + q)", ["q"]), ("q",))[1]


def test_a_flux_written_with_extremes_has_the_modified_equation_of_one_written_with_moduli():
    experiment = design_experiment(spec("advection"))
    written = "u_P*max(velocity_n, 0) - u_N*max(-velocity_n, 0)"
    equation = modified_equation(make_scheme(parse_flux(written, experiment), experiment, "extremes"), "squares")
    assert equation is not None
    assert equation.consistent
    assert str(equation) == str(modified_equation(find("upwind", experiment.equation), "squares"))


def test_a_rational_flux_whose_modified_equation_would_take_hours_is_refused():
    experiment = design_experiment(spec("advection-diffusion", **STEADY))
    q = "abs(velocity_n)*delta/D"
    law = f"D/delta*({q} + 1/(1.01 + 0.6*{q}))*(u_P - u_N) + velocity_n/2*(u_P + u_N) - abs(velocity_n)/2*(u_P - u_N)"
    with pytest.raises(NumericalError, match="not attempted"):
        modified_equation(make_scheme(parse_flux(law, experiment), experiment, "rational"), "squares")


def test_the_flux_becomes_a_scheme_that_a_mesh_can_run():
    experiment = design_experiment(spec("conduction"))
    scheme = make_scheme(parse_flux(SERIES, experiment), experiment, "series")
    # Recipes may have names of built-in schemes.
    assert scheme.name == "discovered-series"
    (message,) = scheme.stages[0].messages.values()
    names = {each.name for each in message.expression.free_symbols}
    assert names == {"A", "delta", "T_P", "T_N", "k_P", "k_N", "V_P", "V_N"}
    values = {"A": 2.0, "delta": 3.0, "T_P": 1.0, "T_N": 5.0, "k_P": 4.0, "k_N": 0.5, "V_P": 1.0, "V_N": 2.0}
    # Distances 1 and 2: 1/(1/4 + 2/0.5) = 4/17, times A and the difference, towards P.
    received = evaluate(message.expression, {symbol(name): each for name, each in values.items()}, np)
    assert received == pytest.approx(2.0 * 4.0 * 4 / 17, rel=1e-14)
