"""Fluxes by algebra and intervals: known properties of textbook fluxes, and decoys that samples would let pass."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from fluxforge.certify import _enclose
from fluxforge.certify.flux import Flux, N, P, flux_of, has_flux_of_equation, states_of
from fluxforge.certify.two_point import (
    bound_step,
    examine_e_condition,
    examine_monotonicity,
    find_peclet_limit,
    is_antisymmetric,
    is_consistent,
    largest_speed,
)
from fluxforge.errors import NumericalError
from fluxforge.expression import parse, symbol
from fluxforge.pde import find as find_equation
from fluxforge.pde import from_document
from fluxforge.scheme import FLUXES, find

ADVECTION, BURGERS, TRAFFIC, BOTH = map(find_equation, ("advection", "burgers", "traffic", "advection-diffusion"))
CONSTANT = from_document(
    {
        "name": "constant",
        "transported": "u",
        "velocity": "a",
        "diffusion": "D",
        "parameters": {"a": {"rank": "vector"}, "D": {"default": 0.2}},
    }
)


def flux(name: str, equation: object = BURGERS) -> Flux:
    return Flux(FLUXES[name].of(equation, P, N), equation, states_of(equation))  # type: ignore[arg-type]


def parse_flux(text: str, equation: object = BURGERS) -> Flux:
    """A flux given as text in p, n, a and |a|."""
    a = symbol("direction_n") if equation is not ADVECTION else symbol("velocity_n")
    formula = parse(text, ("p", "n", "a")).subs({symbol("p"): P, symbol("n"): N, symbol("a"): a})
    return Flux(formula, equation, states_of(equation))  # type: ignore[arg-type]


UPWIND = "a*(p + n)/2 - abs(a)*(n - p)/2"


@pytest.mark.parametrize("equation", [ADVECTION, BURGERS, TRAFFIC], ids=str)
@pytest.mark.parametrize("name", [name for name in FLUXES if name not in ("rusanov", "scharfetter-gummel")])
def test_claims_of_the_textbook_fluxes_hold(name: str, equation: object) -> None:
    if FLUXES[name].refuse(equation) is not None or (name == "lax-wendroff" and equation is not ADVECTION):  # type: ignore[arg-type]
        return
    one = flux(name, equation)
    assert is_consistent(one).holds
    assert is_antisymmetric(one).by.startswith("algebra")
    slopes = examine_monotonicity(one)
    assert slopes.holds is FLUXES[name].monotone
    if slopes.holds:
        assert slopes.exactly


def test_rusanov_is_monotone_to_the_width_of_the_intervals() -> None:
    slopes = examine_monotonicity(flux("rusanov"))
    assert slopes.holds
    # It touches 0 on the diagonal u_P = u_N, where boxes of width 2⁻⁹ of the range leave about as much open.
    assert -0.005 <= min(slopes.rising.bound, slopes.falling.bound) < 0


def test_central_with_diffusion_is_monotone_up_to_a_cell_peclet_number_of_two() -> None:
    central = flux("central", BOTH)
    assert examine_monotonicity(central).holds is False
    # ½ a + K/δ = 0 at |a| δ/K = 2; the bisection ends within 2e-4 of it. Of one K, since its mean is a long formula.
    assert find_peclet_limit(flux("central", CONSTANT)) == pytest.approx(2.0, rel=3e-4)
    assert examine_monotonicity(flux("upwind", BOTH)).holds
    assert examine_monotonicity(flux("scharfetter-gummel", BOTH)).holds


@pytest.mark.parametrize(
    ("text", "equation"),
    [
        ("-a*(p + n)/2 - abs(a)*(n - p)/2", ADVECTION),  # wrong sign
        ("a*(p + n)/4 - abs(a)*(n - p)/4", ADVECTION),  # factor ½
        ("a*(p**2 + n**2)/4 - abs(a)*max(abs(p), abs(n))*(n - p)/2", ADVECTION),  # f of another equation
        ("a*(p + n)/2 + a*abs(n - p)/2 + a/10", ADVECTION),  # antisymmetric, and not consistent
    ],
)
def test_a_flux_of_something_else_is_not_consistent(text: str, equation: object) -> None:
    identity = is_consistent(parse_flux(text, equation))
    assert not identity.holds
    assert identity.apart > 1e-3


def test_what_leaves_one_cell_has_to_enter_the_other() -> None:
    one_sided = parse_flux("a*p", ADVECTION)
    assert is_consistent(one_sided).holds
    assert not is_antisymmetric(one_sided).holds


BUMP = f"({UPWIND})*1 + {{height}}*a*exp(-((p + n - 0.6274)/{{width}})**2)*(n - p)"


# Of the second, SymPy splits exp(a + b) into factors beyond the range of doubles, which are no exact zeros.
@pytest.mark.parametrize("width", [2e-4, 5e-4, *(pytest.param(each, marks=pytest.mark.slow) for each in (1e-3, 2e-3))])
def test_a_narrow_bump_between_samples_is_found(width: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """∂F/∂u_P = 1 but near u_P + u_N = 0.6274, in a strip of about `width`: 1,000 random points hardly see it."""
    # Enough boxes for the length of the strip.
    monkeypatch.setattr(_enclose, "MOST_BOXES", 5_000)
    slopes = examine_monotonicity(parse_flux(BUMP.format(height=2.0, width=width), ADVECTION))
    assert slopes.holds is False
    worst = slopes.rising if slopes.rising.value < slopes.falling.value else slopes.falling
    assert abs(worst.at[0] + worst.at[1] - 0.6274) < 10 * width
    assert examine_monotonicity(parse_flux(BUMP.format(height=0.0, width=width), ADVECTION)).holds


def test_a_notch_of_two_kinks_is_found() -> None:
    """The slope along u_P is 1 but for −4 between two kinks, 1e-3 apart."""
    slopes = examine_monotonicity(parse_flux(f"{UPWIND} - 5*a*(max(p, 0.3137) - max(p, 0.3147))", ADVECTION))
    assert slopes.holds is False
    assert 0.3137 <= slopes.rising.at[0] <= 0.3147
    assert slopes.rising.value == pytest.approx(-4.0, abs=0.1)


def test_a_downward_jump_is_a_counterexample_and_not_only_undecided() -> None:
    falls = parse_flux(f"{UPWIND} - a*sign(p - 0.25)/50", ADVECTION)
    slopes = examine_monotonicity(falls)
    assert slopes.holds is False
    assert slopes.rising.at[0] == pytest.approx(0.25, abs=0.01)


def test_roe_without_a_fix_is_not_an_e_flux() -> None:
    """The decoy of Murman and Roe: |a (u_P + u_N)/2| as viscosity, which vanishes at a transonic rarefaction."""
    roe = parse_flux("a*(p**2 + n**2)/4 - abs(a*(p + n)/2)*(n - p)/2")
    assert is_consistent(roe).holds
    assert is_antisymmetric(roe).holds
    monotone = examine_monotonicity(roe)
    assert monotone.holds is False
    e_flux = examine_e_condition(roe, monotone)
    assert e_flux.holds is False
    # F(−1, 1) = ½, and f(0) = 0 lies between.
    assert e_flux.excess == pytest.approx(0.5, abs=1e-12)
    assert examine_e_condition(flux("godunov"), examine_monotonicity(flux("godunov"))).follows


def test_steps_are_bounded_by_hartens_coefficients() -> None:
    """The exact limit of the total variation is 1 for all of these; intervals may leave a part of it unproved."""
    for name, equation, least in (
        ("upwind", ADVECTION, 1.0),
        ("godunov", TRAFFIC, 0.95),
        ("engquist-osher", BURGERS, 0.9),
        ("rusanov", BURGERS, 0.85),
    ):
        numerical = flux(name, equation)
        bound = bound_step(numerical, largest_speed(numerical), antisymmetric=is_antisymmetric(numerical).holds)
        assert least <= bound.variation <= 1.0
        assert bound.extrema <= 1.0
        # What is proved is never contradicted by a step.
        assert bound.measured_variation >= bound.variation
        assert bound.measured_extrema >= bound.extrema
        assert bound.measured_extrema == pytest.approx(1.0, rel=0.01)
    for name, equation, antisymmetric in (("upwind", BOTH, True), ("upwind", ADVECTION, False)):
        with pytest.raises(NumericalError, match="without diffusion"):
            bound_step(flux(name, equation), 1.0, antisymmetric=antisymmetric)


def test_the_flux_of_a_scheme_is_what_its_message_says() -> None:
    godunov = flux_of(find("godunov", "burgers"))
    assert godunov is not None
    assert is_consistent(godunov).holds
    assert has_flux_of_equation(find("central", "advection-diffusion"))
    assert has_flux_of_equation(find("lax-wendroff", "advection"))
    assert flux_of(find("minmod", "advection")) is None
    assert flux_of(find("euler")) is None


def test_the_largest_speed_is_bounded_from_above() -> None:
    assert 1.0 <= largest_speed(flux("godunov")) <= 1.001
    assert 1.0 <= largest_speed(flux("godunov", TRAFFIC)) <= 1.001
    assert np.isfinite(largest_speed(flux("godunov", TRAFFIC)))
    assert sp.simplify(flux("upwind", ADVECTION).carried - symbol("velocity_n") * symbol("u")) == 0


@pytest.mark.parametrize("name", ["scharfetter-gummel", "central", "upwind"])
def test_a_coefficient_that_is_off_by_a_millionth_is_not_the_equations(name: str) -> None:
    scheme = find(name, BOTH)
    (stage,) = scheme.stages
    ((total, message),) = stage.messages.items()
    wrong = {own: own * sp.Rational(1000001, 1000000) for own in map(symbol, ("D_P", "D_N"))}
    spoiled = replace(stage, messages={total: replace(message, expression=message.expression.xreplace(wrong))})
    assert has_flux_of_equation(scheme)
    assert not has_flux_of_equation(replace(scheme, stages=(spoiled,)))


def test_parameters_of_f_have_their_defaults() -> None:
    text = {"name": "scaled", "transported": "m*u**2/2", "velocity": "a"}
    parameters = {"a": {"rank": "vector"}, "m": {"default": 0.5}}
    scaled = from_document({**text, "parameters": parameters})
    split = flux("engquist-osher", scaled)
    assert split.constants == {symbol("m"): 0.5}
    assert 0.5 <= largest_speed(split) <= 0.5005
    slopes = examine_monotonicity(split)
    assert slopes.holds
    assert slopes.scale == largest_speed(split)
    assert examine_e_condition(split, slopes).holds
    central = flux("central", scaled)
    assert examine_monotonicity(central).rising.value == pytest.approx(-0.25, rel=0.05)


def test_a_tie_of_extrema_does_not_refute_that_a_flux_is_monotone() -> None:
    """At u_P = u_N all arguments of Godunov's extrema are equal; the flux is monotone for every f."""
    cubic = from_document(
        {"name": "cubic", "transported": "u**3", "velocity": "a", "parameters": {"a": {"rank": "vector"}}}
    )
    assert examine_monotonicity(flux("godunov", cubic)).holds is not False
    assert examine_monotonicity(flux("central", cubic)).holds is False
