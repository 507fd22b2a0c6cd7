"""Constants set free, fitted to a loss, and rounded: against minima that are known."""

from fractions import Fraction
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fluxforge import recipe
from fluxforge.data import Problem, ensemble, heat, meshes, random_pair, two_cells, unseen_problems
from fluxforge.distil import Fitted, Free, Objective, layer_stages, nearest_fraction, refit_constants, set_free
from fluxforge.distil._constants import read_constants
from fluxforge.errors import InputError
from fluxforge.scheme import Message, Output, Stage, find, symbol
from strategies import few

A, delta, T_N, T_P, T, S, V, dt, z, alpha = map(symbol, ["A", "delta", "T_N", "T_P", "T", "S", "V", "dt", "z", "alpha"])
FLUX = alpha * A / delta
ALPHA = 1.7


def stage(message: sp.Expr, output: sp.Expr) -> tuple[Stage, ...]:
    return (Stage({"z": Message(message)}, {"T_new": Output(output)}),)


# c1 of the flux alone, and c1, a1 of flux and source.
FLUX_ONLY = Free(stage(symbol("c1") * A / delta * (T_N - T_P), T + dt / V * z), {"c1": 0.6})
BOTH = layer_stages(FLUX, {"a1": 0.6, "c1": 0.6}, 1)
SQUARES, SIZES = (recipe.Loss(residual=recipe.Residual(theta=1.0, norm=norm)) for norm in ("l2", "l1"))


def residual(theta: float, norm: str) -> recipe.Loss:
    return recipe.Loss(residual=recipe.Residual(theta=theta, norm=norm))  # type: ignore[arg-type]


@cache
def drawn() -> Problem:
    spec = recipe.Pairs(time_step=(0.1, 0.1))
    draw = jax.jit(jax.vmap(lambda key: random_pair(spec, key, dtype="float64")))
    problems: Problem = draw(jax.random.split(jax.random.key(0), 300))
    return problems


def pairs(which: int = 0) -> Problem:
    """One of three sets of random pairs with faces and sources, one step for all."""
    problems: Problem = jax.tree.map(lambda leaf: leaf[100 * which : 100 * (which + 1)], drawn())
    return problems


@cache
def objective(loss: recipe.Loss, *, source: bool = True) -> Objective:
    return Objective.of_loss(BOTH if source else FLUX_ONLY, loss)


def test_every_decimal_is_set_free_and_filled_in_again() -> None:
    stages = stage(0.25 * A / delta * (T_N - 1.5 * T_P), T + 2 * dt / V * z + 0.25 * dt * S)
    free = set_free(stages)
    assert sorted(free.values.values()) == [-1.5, 0.25, 0.25]
    expressions = [each.expression for s in free.stages for each in s.messages.values()]
    expressions += [each.expression for s in free.stages for each in s.outputs.values()]
    assert not any(expression.atoms(sp.Float) for expression in expressions)
    # Whole numbers are structure.
    assert free.stages[0].outputs["T_new"].expression.has(2 * dt * z / V)
    assert free.fill_constants(free.values) == stages
    assert list(free.values) == ["c1", "c2", "c3"]
    changed = free.fill_constants({name: 2.0 * value for name, value in free.values.items()})
    assert changed[0].outputs["T_new"].expression == T + 2 * dt / V * z + 0.5 * dt * S
    exact = free.fill_constants({name: sp.Rational(1, 3) for name in free.values})
    assert exact[0].outputs["T_new"].expression == T + 2 * dt / V * z + dt * S / 3


@few(20)
@given(st.lists(st.floats(0.1, 9.0), min_size=4, max_size=4))
def test_filling_undoes_setting_free(values: list[float]) -> None:
    a, b, c, d = (sp.Float(value) for value in values)
    stages = stage(a * A / delta * (b * T_N - T_P), T + c * dt / V * z + d * dt * S)
    free = set_free(stages)
    assert free.fill_constants(free.values) == stages
    assert len(free.values) == len([v for v in values if v != 1.0])


def test_hops_and_ghosts_survive() -> None:
    scheme = find("rk4")
    again = set_free(scheme.stages)
    assert again.fill_constants(again.values) == scheme.stages
    assert again.values == {}


@pytest.mark.parametrize(("theta", "norm"), [(0.0, "l1"), (0.5, "l2"), (1.0, "l1")])
def test_on_two_insulated_cells_the_minimiser_is_known(theta: float, norm: str) -> None:
    """α/(1 + 2θαΔt): the residual asks for the flux at the end of the step, which a constant answers for one Δt."""
    step = 0.3
    spec = recipe.TwoCells(graphs=12, faces="none", time_step=step, corner_cases=False)
    own = two_cells(spec, jax.random.key(1), model=heat(ALPHA))
    own = eqx.tree_at(lambda p: p.S, own, jnp.zeros_like(own.S))
    best = Objective.of_loss(FLUX_ONLY, residual(theta, norm)).fit(own)
    (minimum,), loss = best.values, best.loss
    assert minimum == pytest.approx(ALPHA / (1.0 + 2.0 * theta * ALPHA * step), rel=1e-7)
    assert loss < 1e-7


def test_least_squares_are_those_of_numpy() -> None:
    """The residual is affine in the constants, so the minimum is a linear problem."""
    best = objective(SQUARES).fit(pairs())
    minimum, loss = best.values, best.loss

    def rows(c: list[float]) -> np.ndarray:
        return np.asarray(objective(SQUARES)._rows(np.array(c), pairs()))

    r = rows([0.0, 0.0])
    J = np.stack([rows([1.0, 0.0]) - r, rows([0.0, 1.0]) - r], axis=1)
    np.testing.assert_allclose(minimum, np.linalg.lstsq(J, -r, rcond=None)[0], rtol=1e-9)
    assert loss == pytest.approx(np.sum((r + J @ minimum) ** 2), rel=1e-12)
    assert objective(SQUARES)(minimum, pairs()) == loss


def test_the_least_absolute_residual_is_that_of_a_scan() -> None:
    sizes = objective(SIZES, source=False)
    best = sizes.fit(pairs())
    (minimum,), loss = best.values, best.loss
    fine = np.linspace(minimum - 0.075, minimum + 0.075, 151) + 5e-4
    values = np.array([sizes(np.array([c]), pairs()) for c in fine])
    assert abs(minimum - fine[values.argmin()]) <= 2e-3
    assert loss <= values.min() * (1 + 1e-5)
    # Which is not where the squares are least.
    (other,) = objective(SQUARES, source=False).fit(pairs()).values
    assert abs(other - minimum) > 5e-3
    assert sizes(np.array([other]), pairs()) > loss


def test_two_constants_of_least_absolute_residual_leave_nothing_to_gain() -> None:
    best = objective(SIZES).fit(pairs())
    minimum, loss = best.values, best.loss
    around = [minimum + 3e-3 * np.array([np.cos(t), np.sin(t)]) for t in np.linspace(0.0, 2 * np.pi, 16)]
    assert min(objective(SIZES)(c, pairs()) for c in around) > loss
    again = objective(SIZES).fit(pairs(), start=np.array([2.0, -1.0]))
    # The same vertex, whose digits are those of a two by two system.
    np.testing.assert_allclose(again.values, minimum, rtol=1e-12)
    assert again.loss == pytest.approx(loss, rel=1e-12)


def test_first_order_constants_of_the_printed_residual_are_far_from_one() -> None:
    """At Δt = 0.1 the residual of backward Euler wants less than the whole flux and source; θ = 0 wants all."""
    printed = dict(zip(BOTH.values, objective(SIZES).fit(pairs()).values, strict=True))
    assert 0.3 < printed["c1"] < 0.8
    assert 0.3 < printed["a1"] < 0.95
    best = objective(residual(0.0, "l1")).fit(pairs())
    exact, loss = best.values, best.loss
    np.testing.assert_allclose(exact, 1.0, atol=1e-9)
    assert loss < 1e-9


def test_exact_rationals_are_proposed_and_cost_nothing() -> None:
    loss = recipe.Loss(supervised=recipe.Supervised(norm="l2", per_step=True))
    fitted = refit_constants(BOTH, loss, [pairs(k) for k in (0, 1, 2)])
    assert fitted.rational == {"a1": Fraction(1), "c1": Fraction(1)}
    assert fitted.loss < 1e-20
    assert fitted.rational_loss < 1e-20
    assert max(fitted.uncertainty.values()) < 1e-9
    assert fitted.chosen == {"a1": sp.Integer(1), "c1": sp.Integer(1)}


def test_no_constant_of_least_loss_is_more_certain_than_the_spacing_of_doubles() -> None:
    loss = recipe.Loss(supervised=recipe.Supervised(norm="l1", per_step=True))
    (reading,) = read_constants(BOTH, lambda p: p.answer, loss, {0.1: pairs(1)})
    fitted = refit_constants(BOTH, loss, [pairs(1)])
    for values, off in ((fitted.values, fitted.uncertainty), (reading.least, reading.least_uncertainty)):
        assert all(off[name] >= np.finfo(float).eps * abs(value) > 0.0 for name, value in values.items())


def test_a_rational_that_costs_too_much_is_not_taken() -> None:
    """1/√2 is near 5/7, but an exact fit would be lost; the source's 1 beside it is taken."""
    loss = recipe.Loss(supervised=recipe.Supervised(norm="l2", per_step=True))
    fitted = refit_constants(layer_stages(sp.sqrt(2) * FLUX, {"a1": 0.6, "c1": 0.6}, 1), loss, [pairs()])
    assert fitted.rational == {"a1": Fraction(1)}
    assert fitted.values["c1"] == pytest.approx(np.sqrt(0.5), rel=1e-9)
    assert fitted.rational_loss < 1e-20
    # Where the fit is not exact either, the loss decides.
    rough = refit_constants(layer_stages(sp.sqrt(2) * FLUX, {"a1": 0.6, "c1": 0.6}, 1), residual(0.02, "l2"), [pairs()])
    assert rough.loss > 1e-6
    assert "c1" not in rough.rational
    assert rough.rational_loss <= rough.loss * (1 + 1e-3)


def test_losses_are_told_before_and_after_rounding() -> None:
    fitted = refit_constants(BOTH, SQUARES, [pairs(k) for k in (1, 2)])
    squares = objective(SQUARES)
    assert fitted.loss == squares(np.array(list(fitted.values.values())), pairs(1))
    rounded = [float(fitted.rational.get(name, value)) for name, value in fitted.values.items()]
    assert fitted.rational_loss == pytest.approx(squares(np.array(rounded), pairs(1)), rel=1e-12)
    assert fitted.loss <= fitted.rational_loss
    # The scatter over two sets is the spread of their own minima.
    each = [squares.fit(pairs(k)).values for k in (1, 2)]
    np.testing.assert_allclose(list(fitted.uncertainty.values()), np.abs(each[0] - each[1]) / np.sqrt(2), rtol=1e-6)


@pytest.mark.parametrize(
    ("value", "uncertainty", "wanted"),
    [
        (0.5000026, 2.2e-6, Fraction(1, 2)),
        (1.0 + 1e-12, 0.0, Fraction(1)),
        (0.497, 0.005, Fraction(1, 2)),
        # Nearer to 1 than to any other candidate, and not 1.
        (1.04, 1e-15, None),
        (1.0175, 1e-3, None),
        # Too uncertain to be told from 5/11 and 6/11.
        (0.5, 0.02, None),
        (0.34, np.inf, None),
        (np.nan, 0.1, None),
    ],
)
def test_a_fraction_is_taken_only_where_no_other_candidate_is_near(
    value: float, uncertainty: float, wanted: Fraction | None
) -> None:
    assert nearest_fraction(value, uncertainty) == wanted


def test_numbers_and_rationals_are_chosen_together() -> None:
    fitted = Fitted({"c1": 0.49, "c2": 0.123}, {"c1": 0.0, "c2": 0.0}, 1.0, {"c1": Fraction(1, 2)}, 1.0)
    assert fitted.chosen == {"c1": sp.Rational(1, 2), "c2": 0.123}


def test_a_formula_without_constants_is_judged_as_it_is() -> None:
    free = set_free(find("euler").stages)
    fitted = refit_constants(free, SIZES, [pairs()])
    assert fitted.values == {}
    assert (
        fitted.loss == fitted.rational_loss == pytest.approx(objective(SIZES)(np.array([1.0, 1.0]), pairs()), rel=1e-12)
    )


def test_padding_does_not_matter() -> None:
    """A mesh among larger ones, its padding full of noise, has the loss it has alone."""
    generated = meshes(recipe.Meshes(meshes=3, cells=(12, 30), engine="builtin"), 0)
    together = unseen_problems(ensemble(generated), 0, fourier=0.4, field="noise")
    live = together.graph.live
    assert not bool(live.all())
    dirty = Problem(
        together.graph,
        jnp.where(live, together.T, 1e3),
        jnp.where(live, together.S, -1e3),
        together.dt,
        together.parameters,
        together.answer,
    )
    c = np.array([0.8, 0.7])
    for loss in (SIZES, SQUARES):
        own = objective(loss)
        alone = [own(c, jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], together)) for k in range(3)]
        assert own(c, dirty) == pytest.approx(np.mean(alone), rel=1e-12)
    np.testing.assert_allclose(own.fit(dirty).values, own.fit(together).values, rtol=1e-10)


def test_a_loss_of_several_terms_is_refused() -> None:
    both = recipe.Loss(supervised=recipe.Supervised(), residual=recipe.Residual())
    with pytest.raises(InputError, match="constants are refitted to one term"):
        Objective.of_loss(BOTH, both)
