"""Tableaux applied to equations: the built-in schemes as they were written by hand, and tableaux not built in."""

import json
from pathlib import Path

import pytest
import sympy as sp

from fluxforge.expression import parse, symbol, to_text
from fluxforge.pde import HEAT, from_document
from fluxforge.scheme import (
    EULER,
    TABLEAUX,
    Ghost,
    Row,
    Tableau,
    amplification,
    find,
    integrate,
    rkl2_tableau,
    runge_kutta,
    to_document,
)
from fluxforge.scheme import from_document as scheme_from_document
from fluxforge.scheme.reference import BUILT_IN

# Every built-in scheme as text, written before there were tableaux.
FORMS = json.loads((Path(__file__).parent / "built_in_forms.json").read_text(encoding="utf-8"))
FISHER = from_document(
    {"name": "fisher", "diffusion": "D", "reaction": "r*u*(1 - u)", "parameters": {"D": {}, "r": {}}}
)
THIRD, HALF, QUARTER = sp.Rational(1, 3), sp.Rational(1, 2), sp.Rational(1, 4)
KUTTA3 = runge_kutta(((HALF,), (-1, 2), tuple(sp.Rational(b, 6) for b in (1, 4, 1))))
SSP3 = (
    Row({0: sp.Integer(1)}),
    Row({1: QUARTER}, {1: QUARTER}),
    Row({2: sp.Rational(2, 3)}, {2: sp.Rational(2, 3)}),
)


@pytest.mark.parametrize("name", FORMS)
def test_the_built_in_schemes_are_what_they_were(name: str) -> None:
    scheme = find(name)
    assert scheme == scheme_from_document(FORMS[name])
    assert scheme.summary == FORMS[name]["summary"]


def test_every_built_in_scheme_is_compared() -> None:
    assert set(BUILT_IN) < set(FORMS)


@pytest.mark.parametrize(
    ("rows", "factor"),
    [
        (
            KUTTA3,
            "1 + z + z**2/2 + z**3/6",
        ),
        (runge_kutta(((THIRD,), (0, HALF), (0, 0, 1))), "1 + z + z**2/2 + z**3/6"),
        (SSP3, "1 + z + z**2/2 + z**3/6"),
        ((Row({0: sp.Integer(1)}), Row({1: HALF}, {1: HALF})), "1 + z + z**2/2"),
        (runge_kutta(((1,), (HALF, HALF))), "1 + z + z**2/2"),
    ],
)
def test_other_tableaux_have_the_factor_of_the_textbook(rows: tuple[Row, ...], factor: str) -> None:
    scheme = integrate(Tableau("other", "", rows, order=len(rows), stable_to=2.0), HEAT)
    z = symbol("z", "complex")
    assert sp.expand(amplification(scheme) - parse(factor, {"z": z})) == 0


def test_a_reaction_stands_in_every_stage_at_the_state_of_that_stage() -> None:
    euler = integrate(EULER, FISHER).stages[0]
    assert to_text(euler.messages["z"].expression) == "A*D/delta*(T_N - T_P)"
    wanted = parse("T + dt*(z/V + S + r*T*(1 - T))", ("T", "dt", "z", "V", "S", "r"))
    assert sp.expand(euler.outputs["T_new"].expression - wanted) == 0
    midpoint = integrate(TABLEAUX["midpoint"], FISHER)
    names = ("T", "dt", "z_half", "V", "S", "r", "half")
    wanted = parse("T + dt*(z_half/V + S + r*half*(1 - half))", names)
    assert sp.expand(midpoint.stages[1].outputs["T_new"].expression - wanted) == 0
    rk4 = integrate(TABLEAUX["rk4"], FISHER)
    k2 = rk4.stages[1].outputs["k2"]
    wanted = parse("z2/V + S + r*(T + dt/2*k1)*(1 - T - dt/2*k1)", ("T", "dt", "z2", "V", "S", "r", "k1"))
    assert sp.expand(k2.expression - wanted) == 0
    assert k2.ghost is Ghost.ZERO


@pytest.mark.parametrize(
    "tableau",
    [*(TABLEAUX[name] for name in ("euler", "midpoint", "rk4", "crank-nicolson")), rkl2_tableau(4)],
    ids=lambda t: t.name,
)
def test_a_capacity_divides_every_rate(tableau: Tableau) -> None:
    with_capacity = from_document(
        {"name": "stored", "diffusion": "k", "capacity": "c", "parameters": {"k": {}, "c": {"where": "cell"}}}
    )
    plain = from_document({"name": "stored", "diffusion": "k", "parameters": {"k": {}}})
    c = symbol("c")
    for one, other in zip(integrate(tableau, with_capacity).stages, integrate(tableau, plain).stages, strict=True):
        assert one.messages == other.messages
        for name, output in one.outputs.items():
            # At c = 1 both are the same; no output can do without c, if it adds a rate.
            assert sp.expand(output.expression.xreplace({c: sp.Integer(1)}) - other.outputs[name].expression) == 0
            assert c in output.expression.free_symbols


def test_a_scheme_claims_only_what_the_equation_allows() -> None:
    assert integrate(EULER, HEAT).claims.stable_to == 2.0
    assert integrate(EULER, FISHER).claims.stable_to is None
    assert integrate(EULER, FISHER).claims.time_order is None


@pytest.mark.parametrize("name", ["euler", "midpoint", "rk4", "rkl2-3", pytest.param("rkl2-8", marks=pytest.mark.slow)])
def test_parameters_may_have_the_names_that_stages_use(name: str) -> None:
    """The same scheme as with other names, and one that a file brings back."""
    for word in ("k1", "D1", "Y1", "z1", "rate", "half"):
        document = {"name": "plain", "diffusion": word, "parameters": {word: {"default": 1.0}}}
        scheme = find(name, from_document(document))
        assert scheme_from_document(to_document(scheme)) == scheme
        assert amplification(scheme) == amplification(find(name)) is not None
