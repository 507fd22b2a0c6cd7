"""Which schemes are linear, found by differentiation and never by guessing."""

import pytest
import sympy as sp

from fluxforge.expression import parse
from fluxforge.scheme import (
    Affine,
    Claims,
    Hop,
    Scheme,
    SchemeBuilder,
    affine_form,
    linear_stages,
    message_symbols,
    symbol,
)
from fluxforge.scheme.reference import BUILT_IN

EDGE = message_symbols(Hop.EDGE, ())
FIELDS = {symbol(name) for name in ("T_P", "T_N", "S_P", "S_N")}


def one_stage(message: str, output: str = "T + dt*z") -> Scheme:
    return SchemeBuilder().stage({"z": message}, {"T_new": output}).build("mine", summary="", claims=Claims())


def form(text: str) -> Affine | None:
    return affine_form(parse(text, EDGE), FIELDS)


@pytest.mark.parametrize(
    "text",
    [
        "T_N*T_P",
        "T_N**2",
        "T_N**2 - T_P**2",
        "(T_N + T_P)*(T_N - T_P)",
        "(T_N + A)*(T_P - delta)",
        "T_N*S_N",
        "T_N/T_P",
        "A/T_N",
        "abs(T_N - T_P)",
        "sign(T_N)*A",
        "sqrt(T_N)",
        "exp(T_N)",
        "tanh(T_N - T_P)",
        "min(T_N, T_P)",
        "max(T_N, 0)",
        "sin(A*T_N)",
        "T_N**3/T_P**2",
        "1/(T_N - T_P)",
    ],
)
def test_expressions_that_are_not_affine_are_detected(text: str) -> None:
    assert form(text) is None
    assert linear_stages(one_stage(text)) is None


@pytest.mark.parametrize(
    ("text", "coefficients", "constant"),
    [
        ("alpha*A/delta*(T_N - T_P)", {"T_N": "alpha*A/delta", "T_P": "-alpha*A/delta"}, "0"),
        ("A*(T_N + 3) - T_N*delta", {"T_N": "A - delta"}, "3*A"),
        (
            "(T_N - T_P)*(A + d_x**2)/sqrt(delta)",
            {"T_N": "(A + d_x**2)/sqrt(delta)", "T_P": "-(A + d_x**2)/sqrt(delta)"},
            "0",
        ),
        ("T_N + S_P*V_N - n_x", {"T_N": "1", "S_P": "V_N"}, "-n_x"),
        ("(T_N + A)**2 - T_N**2", {"T_N": "2*A"}, "A**2"),
        ("(T_N + T_P)*(T_N - T_P) - T_N**2 + T_P**2 + T_P", {"T_P": "1"}, "0"),
        ("exp(-A)*T_N/min(A, delta)", {"T_N": "exp(-A)/min(A, delta)"}, "0"),
        ("A/delta", {}, "A/delta"),
    ],
)
def test_what_is_affine_is_split_exactly(text: str, coefficients: dict[str, str], constant: str) -> None:
    affine = form(text)
    assert affine is not None
    for name in {*coefficients, *(str(s) for s in affine.coefficients)}:
        coefficient = affine.coefficients.get(symbol(name), sp.Integer(0))
        assert sp.simplify(coefficient - parse(coefficients.get(name, "0"), EDGE)) == 0
    assert sp.simplify(affine.constant - parse(constant, EDGE)) == 0


@pytest.mark.parametrize("text", ["(T_N**2 + A*T_N)/T_N", "T_N*(T_P + 1)/(T_P + 1) + 0*T_N"])
def test_an_affine_disguise_is_split_or_refused_and_never_split_wrongly(text: str) -> None:
    expression = parse(text, EDGE)
    affine = affine_form(expression, FIELDS)
    if affine is not None:
        rebuilt = affine.constant + sp.Add(*(c * s for s, c in affine.coefficients.items()))
        assert sp.simplify(rebuilt - expression) == 0


def test_a_quotient_of_a_field_by_itself_is_geometry() -> None:
    (stage,) = linear_stages(one_stage("A*T_N/T_N")) or ()
    assert set(stage.fixed_messages) == {"z"}


def test_products_in_outputs_count_too() -> None:
    assert linear_stages(one_stage("T_N - T_P", "T + z**2")) is None
    assert linear_stages(one_stage("T_N - T_P", "T*z")) is None
    assert linear_stages(one_stage("T_N - T_P", "T*S + z")) is None
    assert linear_stages(one_stage("A", "T*z**2")) is not None
    assert linear_stages(one_stage("A", "T*T*z")) is None


def test_a_product_of_two_earlier_outputs_is_not_linear_unless_one_is_geometry() -> None:
    def scheme(first: str, second: str) -> Scheme:
        builder = SchemeBuilder().stage({"m": first, "k": second}, {"a": "m", "b": "k/V"})
        return builder.stage({"z": "a_N*b_P - a_P*b_N"}, {"T_new": "T + dt*z"}).build("m", summary="", claims=Claims())

    assert linear_stages(scheme("T_N", "T_P")) is None
    stages = linear_stages(scheme("T_N", "A/delta"))
    assert stages is not None
    assert set(stages[0].fixed_outputs) == {"b"}
    assert set(stages[0].fixed_messages) == {"k"}
    assert {str(s) for s in stages[1].messages["z"][1].coefficients} == {"a_N", "a_P"}


def test_the_corrected_scheme_has_its_geometry_set_apart() -> None:
    stages = linear_stages(BUILT_IN["corrected"])
    assert stages is not None
    assert set(stages[0].fixed_messages) == {"m_xx", "m_xy", "m_yy"}
    assert set(stages[0].messages) == {"r_x", "r_y"}
    assert set(stages[0].outputs) == {"g_x", "g_y"}


@pytest.mark.parametrize("scheme", BUILT_IN.values(), ids=str)
def test_every_built_in_scheme_is_linear_and_its_coefficients_are_free_of_fields(scheme: Scheme) -> None:
    stages = linear_stages(scheme)
    assert stages is not None
    assert len(stages) == len(scheme.stages)
    for stage, written in zip(stages, scheme.stages, strict=True):
        assert {*stage.fixed_messages, *stage.messages} == set(written.messages)
        assert {*stage.fixed_outputs, *stage.outputs} == set(written.outputs)
        for _, affine in stage.messages.values():
            for expression in (*affine.coefficients.values(), affine.constant):
                assert not any(str(s).startswith(("T_", "S_")) for s in expression.free_symbols)


def test_a_constant_scheme_is_linear_with_everything_fixed() -> None:
    (stage,) = linear_stages(one_stage("A", "3*V + z")) or ()
    assert set(stage.fixed_outputs) == {"T_new"}
    assert not stage.outputs


def test_a_message_name_used_twice_varies_only_where_it_does() -> None:
    scheme = (
        SchemeBuilder()
        .stage({"z": "T_N"}, {"a": "z"})
        .stage({"z": "A"}, {"c": "z/V"})
        .stage({"y": "T_N - T_P"}, {"T_new": "T + y*c + a"})
        .build("mine", summary="", claims=Claims())
    )
    stages = linear_stages(scheme)
    assert stages is not None
    assert set(stages[0].outputs) == {"a"}
    assert set(stages[1].fixed_outputs) == {"c"}
