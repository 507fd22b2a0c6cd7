"""Formulas of a network's parts composed: the gauge cancels, and updates that are not linear in a sum are refused."""

from pathlib import Path

import jax
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fluxforge import recipe
from fluxforge.data import Model, heat
from fluxforge.distil import compose, to_canonical
from fluxforge.errors import SchemeError
from fluxforge.gnn import Network, build
from fluxforge.scheme import Ghost, Hop, Message, Output, Stage, symbol
from own_equations import FISHER, equation
from strategies import few

A, delta, T_N, T_P, T, S, V, dt, z, alpha = map(
    symbol, ["A", "delta", "T_N", "T_P", "T", "S", "V", "dt", "z1", "alpha"]
)
z2, FURTHER = symbol("z2"), symbol("h1_N") - symbol("h1_P")


def network(layers: int = 1, **more: object) -> Network:
    spec = recipe.Network(width=2, depth=1, layers=layers, **more)  # type: ignore[arg-type]
    return build(spec, jax.random.key(0))


ONE = network()
FLUX = A / delta * (T_N - T_P)

scales = st.floats(0.05, 20.0) | st.floats(-20.0, -0.05)


def numbers(expr: sp.Expr) -> list[float]:
    return [float(number) for number in expr.atoms(sp.Float)]


@few(25)
@given(scales, st.floats(0.1, 10.0))
def test_the_gauge_cancels_and_the_message_is_the_flux_times_alpha(scale: float, diffusivity: float) -> None:
    """Whatever factor the message has, the update undoes; what is left is relative to α."""
    formulas = {"z1": sp.Float(scale) * FLUX, "T_new": sp.Float(diffusivity) / sp.Float(scale) * z + V * S}
    (stage,) = to_canonical(compose(ONE, formulas), heat(diffusivity))
    assert stage.outputs["T_new"].expression == T + dt / V * z + dt * S
    message = stage.messages["z1"].expression
    number = sp.expand(message / (alpha * FLUX)).simplify()
    assert number.is_number
    assert float(number) == pytest.approx(1.0, rel=1e-12)
    assert message.has(alpha)


@few(15)
@given(scales, st.floats(0.1, 10.0), st.floats(0.2, 3.0))
def test_a_factor_that_is_no_gauge_stays_in_the_message(scale: float, diffusivity: float, factor: float) -> None:
    formulas = {"z1": sp.Float(scale) * FLUX, "T_new": sp.Float(factor * diffusivity / scale) * z + V * S}
    (stage,) = to_canonical(compose(ONE, formulas), heat(diffusivity))
    assert stage.outputs["T_new"].expression == T + dt / V * z + dt * S
    assert float((stage.messages["z1"].expression / (alpha * FLUX)).simplify()) == pytest.approx(factor, rel=1e-12)


def test_the_parts_take_their_places() -> None:
    formulas = {"z1": FLUX, "h1": z / 2 + V * S / 2, "z2": A / delta * FURTHER, "T_new": z2 + V * S}
    first, second = compose(network(2), formulas)
    assert first == Stage({"z1": Message(FLUX, Hop.EDGE)}, {"h1": Output(T + dt * z / V / 2 + dt * S / 2)})
    assert list(second.messages) == ["z2"]
    assert second.outputs["T_new"] == Output(T + dt * z2 / V + dt * S, Ghost.DIRICHLET)


def test_a_gauge_per_layer_cancels_in_each() -> None:
    formulas = {
        "z1": -0.4 * FLUX,
        "h1": -1.25 * z + V * S / 2,
        "z2": 8.0 * A / delta * FURTHER,
        "T_new": 0.125 * z2 + V * S,
    }
    first, second = to_canonical(compose(network(2), formulas), heat(1.0))
    assert first.outputs["h1"].expression == T + dt * z / V + dt * S / 2
    assert numbers(first.messages["z1"].expression) == [0.5]
    assert second.outputs["T_new"].expression == T + dt * z2 / V + dt * S
    assert float((second.messages["z2"].expression / (alpha * A / delta * FURTHER)).simplify()) == 1.0


def test_an_update_that_predicts_the_temperature_itself_is_composed_as_it_is() -> None:
    direct = network(update="direct")
    (stage,) = to_canonical(compose(direct, {"z1": 3.0 * FLUX, "T_new": T + dt * z / (3.0 * V) + dt * S}), heat(1.0))
    assert stage.outputs["T_new"].expression == T + dt * z / V + dt * S


@pytest.mark.parametrize("update", [z + z**2, z**2, z / (1 + z), sp.sqrt(1 + z), sp.Abs(z), T * z + sp.exp(z)], ids=str)
def test_an_update_that_is_not_linear_in_its_sum_is_refused(update: sp.Expr) -> None:
    with pytest.raises(SchemeError, match="the update is not linear in the sum 'z1'"):
        to_canonical(compose(ONE, {"z1": FLUX, "T_new": update}), heat(1.0))


def test_brackets_that_cancel_are_linear_all_the_same() -> None:
    (stage,) = to_canonical(compose(ONE, {"z1": FLUX, "T_new": z * (1 + z) - z**2 + V * S}), heat(1.0))
    assert stage.outputs["T_new"].expression == T + dt * z / V + dt * S


def test_a_sum_that_nobody_reads_keeps_its_message() -> None:
    (stage,) = to_canonical(compose(ONE, {"z1": 0.3 * FLUX, "T_new": V * S}), heat(1.0))
    assert stage.outputs["T_new"].expression == T + dt * S
    assert numbers(stage.messages["z1"].expression) == [0.3]


@pytest.mark.parametrize(
    "message",
    [T_N, 0.7 * T_N, A / delta, 0.3 * A * (T_N + T_P), symbol("V_N") * T_N, A / delta * (T_N - T_P / 2)],
    ids=str,
)
def test_a_message_that_is_no_flux_gets_no_alpha(message: sp.Expr) -> None:
    """Its number is the same at every diffusivity: a factor α/α_trained would be right at the trained one alone."""
    stages = compose(ONE, {"z1": message, "T_new": 2.0 * z + V * S})
    (stage,) = to_canonical(stages, heat(0.4))
    expression = stage.messages["z1"].expression
    assert not expression.has(alpha)
    assert sp.expand(expression - 2.0 * message) == 0


def test_a_message_with_an_alpha_of_its_own_gets_no_second_one() -> None:
    (stage,) = to_canonical(compose(ONE, {"z1": alpha * FLUX, "T_new": z + V * S}), heat(0.4))
    assert sp.expand(stage.messages["z1"].expression - alpha * FLUX) == 0


@pytest.mark.parametrize(
    "message",
    [
        A / delta * (T_N - 1.02 * T_P),
        A / delta * (T_N**3 - T_P**3),
        A * sp.sin(T_N - T_P),
        A * (symbol("S_N") - symbol("S_P")),
    ],
    ids=str,
)
def test_differences_of_fields_are_fluxes_though_their_constants_are_still_rough(message: sp.Expr) -> None:
    (stage,) = to_canonical(compose(ONE, {"z1": message, "T_new": z + V * S}), heat(0.5))
    ratio = stage.messages["z1"].expression / (alpha * message)
    assert float(sp.simplify(ratio)) == pytest.approx(2.0)


@few(15)
@given(scales, st.floats(0.1, 10.0), st.floats(0.1, 10.0), st.floats(0.2, 3.0))
def test_fluxes_and_reactions_are_written_with_the_parameters_of_their_equation(
    tmp_path_factory: pytest.TempPathFactory, scale: float, D: float, r: float, factor: float
) -> None:
    """Numbers are relative to the trained parameters, so that the formula holds at others."""
    own = Model(equation(FISHER, tmp_path_factory.mktemp("own")), (("D", D), ("r", r)))
    own_D, own_r = symbol("D"), symbol("r")
    formulas = {"z1": sp.Float(scale) * FLUX, "T_new": D / scale * z + V * (S + factor * r * T - r * T**2)}
    (stage,) = to_canonical(compose(ONE, formulas), own)
    message, output = stage.messages["z1"].expression, stage.outputs["T_new"].expression
    assert float((message / (own_D * FLUX)).simplify()) == pytest.approx(1.0, rel=1e-12)
    rest = sp.expand(output - T - dt * S - dt * z / V)
    assert float(rest.coeff(T, 1) / (dt * own_r)) == pytest.approx(factor, rel=1e-12)
    assert float(rest.coeff(T, 2) / (dt * own_r)) == pytest.approx(-1.0, rel=1e-12)


def test_terms_that_the_equation_does_not_have_keep_their_numbers(tmp_path: Path) -> None:
    own = Model(equation(FISHER, tmp_path), (("D", 1.0), ("r", 2.0)))
    (stage,) = to_canonical(compose(ONE, {"z1": FLUX, "T_new": z + V * (S + 2.0 * T - 2.0 * T**3)}), own)
    output = stage.outputs["T_new"].expression
    assert output.coeff(T, 3) == -2.0 * dt
    assert float(sp.expand(output - T).coeff(T, 1) / (dt * symbol("r"))) == 1.0


def test_whole_numbers_of_a_reaction_stay_structure(tmp_path: Path) -> None:
    own = Model(equation(FISHER, tmp_path), (("D", 1.0), ("r", 1.0)))
    (stage,) = to_canonical(compose(ONE, {"z1": FLUX, "T_new": z + V * (S + T * (1 - T))}), own)
    assert numbers(stage.outputs["T_new"].expression) == []
    assert sp.expand(stage.outputs["T_new"].expression - T - dt * (z / V + S + symbol("r") * T * (1 - T))) == 0
