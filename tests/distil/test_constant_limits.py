"""Constants in the limit of small steps: what each residual asks for, and how sure that is."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge import recipe
from fluxforge.data import Ensemble, Problem, heat, unseen_meshes, unseen_problems
from fluxforge.distil import Limit, Objective, extrapolate_constants, layer_stages, small_steps
from fluxforge.scheme import symbol
from strategies import few

FLUX = symbol("alpha") * symbol("A") / symbol("delta")
LADDER = 0.5 / 2.0 ** np.arange(8)
numbers = st.floats(-3.0, 3.0)
every_norm = pytest.mark.parametrize("norm", [pytest.param("l1", marks=pytest.mark.slow), "l2"])


@few(30)
@given(st.tuples(numbers, numbers, numbers, numbers))
def test_a_cubic_is_extrapolated_exactly(coefficients: tuple[float, float, float, float]) -> None:
    values = np.polynomial.Polynomial(coefficients)(LADDER)
    limit, scatter = extrapolate_constants(LADDER, np.stack([values, 2.0 * values], axis=1))
    np.testing.assert_allclose(limit, [coefficients[0], 2.0 * coefficients[0]], atol=1e-10)
    # Errors of the values are carried along: weights of an extrapolation add up to more than one in size.
    assert np.all(extrapolate_constants(LADDER, values[:, None], np.full((8, 1), 1e-3))[1] >= scatter[:1] + 1e-3)
    # The uncertainty is what a quadratic would make of it: proportional to what a cubic adds.
    size = abs(coefficients[3]) * LADDER[-4] ** 3
    assert 1e-2 * size - 1e-10 <= scatter[0] <= size + 1e-10


@few(30)
@given(st.floats(-2.0, 2.0), st.floats(0.1, 3.0))
def test_the_error_is_within_the_uncertainty(start: float, rate: float) -> None:
    values = np.stack([start / (1.0 + rate * LADDER), start + np.sin(rate * LADDER)], axis=1)
    limit, scatter = extrapolate_constants(LADDER, values)
    assert np.all(np.abs(limit - start) <= scatter + 1e-12)
    assert np.all(scatter < 1e-3)


def test_the_extrapolation_does_not_use_the_longest_steps() -> None:
    values = (1.0 + LADDER)[:, None]
    spoilt = values.copy()
    spoilt[:3] = 77.0
    assert extrapolate_constants(LADDER, spoilt)[0] == pytest.approx(1.0, abs=1e-12)
    spoilt[3] = 77.0
    assert abs(extrapolate_constants(LADDER, spoilt)[0] - 1.0) > 1e-3


@cache
def around() -> Ensemble:
    return unseen_meshes(recipe.Evaluation(meshes=3, cells=30, engine="builtin"), 0)


@cache
def problems(fourier: float) -> Problem:
    return unseen_problems(around(), 0, fourier=fourier, model=heat(1.7), field="mixed")


@cache
def fit_limit(layers: int, longest: float = 0.5, **residual: str | float) -> Limit:
    """From constants that are all wrong."""
    start = {f"{letter}{k}": 0.9 / (layers - k + 1) for k in range(1, layers + 1) for letter in "ac"}
    loss = recipe.Loss(residual=recipe.Residual(**residual))  # type: ignore[arg-type]
    steps = [longest / 2**k for k in range(8)]
    return small_steps(layer_stages(FLUX, start, layers), loss, {step: problems(step) for step in steps})


@pytest.mark.parametrize(("theta", "first", "norm"), [(0.5, 0.5, "l1"), (1.0, 1.0, "l1")])
def test_two_layers_tend_to_the_midpoint_rule_or_to_a_neumann_series(theta: float, first: float, norm: str) -> None:
    """θ = ½ gives c₁ = a₁ = ½; θ = 1, as printed, gives 1: the series of backward Euler."""
    limit = fit_limit(2, theta=theta, norm=norm)
    wanted = {"a1": first, "c1": first, "a2": 1.0, "c2": 1.0}
    # A cubic through Fo = 1/32 … 1/256 leaves terms of (θ Fo)⁴, Fo = 1/32: 1e-6 times a factor of a few.
    assert limit.fitted.values == pytest.approx(wanted, abs=1e-5)
    assert {name: float(value) for name, value in limit.fitted.rational.items()} == wanted
    assert all(
        abs(limit.fitted.values[name] - value) <= limit.fitted.uncertainty[name] for name, value in wanted.items()
    )


def test_theta_and_the_step_enter_as_their_product_to_the_last_digits() -> None:
    """The residual with θ at Δt is that with θ/2 at 2Δt, its first layer's constants doubled: an exact identity.

    Two fits that share no evaluation have to agree within their stated errors, which are those of round-off.
    """
    half, one = fit_limit(2, theta=0.5, norm="l1"), fit_limit(2, theta=1.0, norm="l1")
    for k in range(7):
        for name, factor in {"a1": 2.0, "c1": 2.0, "a2": 1.0, "c2": 1.0}.items():
            allowed = 10.0 * (factor * half.errors[k][name] + one.errors[k + 1][name])
            assert allowed < 1e-7
            assert abs(one.values[k + 1][name] - factor * half.values[k][name]) <= allowed


def test_a_kink_between_two_steps_is_part_of_the_uncertainty() -> None:
    """Of absolute values the best constants are smooth only as long as the same rows vanish."""
    for norm in ("l1", "l2"):
        limit = fit_limit(4, longest=1.0, kind="hermite", norm=norm).fitted
        for name, wanted in {"a1": 1 / 4, "c1": 1 / 4, "a2": 1 / 3, "c2": 1 / 3, "a3": 1 / 2, "c4": 1.0}.items():
            assert abs(limit.values[name] - wanted) <= limit.uncertainty[name] < 1e-2


@every_norm
def test_where_a_product_vanishes_the_constants_behind_it_are_undetermined(norm: str) -> None:
    """At θ = 0 the last layer alone is Euler's: c3 = 0 multiplies whatever the first two layers do."""
    loss = recipe.Loss(residual=recipe.Residual(theta=0.0, norm=norm))
    start = {f"{letter}{k}": 0.0 if k == 3 else 1.0 for k in range(1, 5) for letter in "ac"}
    best = Objective.of_loss(layer_stages(FLUX, start, 4), loss).fit(problems(0.25))
    by_name = dict(zip(start, zip(best.values, best.error, strict=True), strict=True))
    for name, wanted in {"a4": 1.0, "c4": 1.0, "a3": 0.0, "c3": 0.0}.items():
        assert abs(by_name[name][0] - wanted) <= 10.0 * by_name[name][1] < 1e-9
    assert all(by_name[name][1] == np.inf for name in ("a1", "c1", "a2", "c2"))
    assert best.exact


@every_norm
def test_of_constants_that_do_the_same_one_is_fitted(norm: str) -> None:
    """c1·c2·flux has a gauge: the product is determined, and one of the two is held."""
    plain = layer_stages(FLUX, {"a1": 0.9, "c1": 0.8}, 1)
    twice = replace(plain, stages=layer_stages(FLUX * symbol("c2"), {"a1": 0.9, "c1": 0.8}, 1).stages)
    twice = replace(twice, values={"a1": 0.9, "c1": 0.8, "c2": 1.1})
    loss = recipe.Loss(residual=recipe.Residual(theta=1.0, norm=norm))
    wanted, best = (Objective.of_loss(each, loss).fit(problems(0.25)) for each in (plain, twice))
    assert best.values[1] * best.values[2] == pytest.approx(wanted.values[1], rel=1e-9)
    assert best.loss == pytest.approx(wanted.loss, rel=1e-12)
    assert sorted(np.isfinite(best.error)) == [False, True, True]


def test_at_the_longest_step_the_best_constants_are_others() -> None:
    """The paper's ½ is what θ = 1 gives near the Fourier limit, not what it tends to."""
    printed, trapezoid = fit_limit(2, theta=1.0, norm="l1"), fit_limit(2, theta=0.5, norm="l1")
    c = [row["c1"] for row in printed.values]
    assert c[0] < 0.75
    assert np.all(np.diff(c) > 0)
    assert trapezoid.values[0]["c1"] < 0.42
    assert printed.steps == tuple(0.5 / 2**k for k in range(8))
    assert np.all(np.diff(printed.losses) < 0)
    rows = printed.rows()
    assert [row.step for row in rows] == list(printed.steps)
    assert rows[3] == (printed.steps[3], printed.values[3], printed.errors[3], printed.losses[3])


@pytest.mark.parametrize(
    ("kind", "wanted"), [("hermite", (1 / 4, 1 / 3, 1 / 2, 1.0)), ("theta", (1 / 2, 1 / 2, 1 / 2, 1.0))]
)
def test_four_layers_tend_to_rk4_or_to_the_series_of_crank_nicolson(kind: str, wanted: tuple[float, ...]) -> None:
    """The order of the residual caps what can be found: only the corrected trapezoid, of order four, gives RK4.

    The first layer counts in the residual as Fo⁴ at the shortest step: its constants are the least sure. Measured with
    steps up to Fo = 1: within 2e-6 (hermite) and 4e-5 (theta) there, within 1e-6 in the later layers.
    """
    limit = fit_limit(4, longest=1.0, kind=kind, norm="l2")
    for letter in "ac":
        values = [limit.fitted.values[f"{letter}{k}"] for k in (1, 2, 3, 4)]
        assert values[0] == pytest.approx(wanted[0], abs=1e-4)
        assert values[1:] == pytest.approx(wanted[1:], abs=1e-5)
        assert [float(limit.fitted.rational[f"{letter}{k}"]) for k in (1, 2, 3, 4)] == list(wanted)


def test_rounding_is_told_with_its_loss_at_the_shortest_step() -> None:
    limit = fit_limit(2, theta=0.5, norm="l1")
    # In the limit the rational is the better formula for short steps too, but for the step that is left.
    assert limit.fitted.rational_loss == pytest.approx(limit.fitted.loss, rel=0.01)
    assert limit.fitted.loss >= limit.losses[-1]
    assert limit.fitted.chosen == {**limit.fitted.values, **limit.fitted.rational}


def test_what_is_not_near_a_fraction_or_not_sure_stays_a_number() -> None:
    """Steps so long that five of them tell little about zero."""
    loss = recipe.Loss(residual=recipe.Residual(theta=0.5, norm="l2"))
    free = layer_stages(FLUX, {"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}, 2)
    limit = small_steps(free, loss, {step: problems(step) for step in (3.0, 2.5, 2.0, 1.5, 1.0)})
    assert all(limit.fitted.uncertainty[name] < 0.02 for name in limit.fitted.rational)
    assert len(limit.fitted.rational) < 4


def test_the_least_squares_do_not_depend_on_where_the_fit_starts() -> None:
    """Eight constants of four layers, each wrong by up to 70 %: the minimum is one, so every start has to reach it."""
    loss = recipe.Loss(residual=recipe.Residual(kind="theta", theta=0.5, norm="l2"))
    names = [f"{letter}{k}" for k in range(1, 5) for letter in "ac"]
    objective = Objective.of_loss(layer_stages(FLUX, dict.fromkeys(names, 1.0), 4), loss)
    # A trust region in the scale of the Jacobian's columns ran off to a loss of 4e3 from the third of these.
    starts = np.random.default_rng(0).uniform(0.3, 1.7, 60)[36:].reshape(3, 8)
    losses = [objective.fit(problems(0.3), start=start).loss for start in starts]
    # Rows of size 1e-5 with a round-off of 1e-16: the sums of their squares agree to 1e-10.
    assert max(losses) <= (1.0 + 1e-8) * min(losses)
