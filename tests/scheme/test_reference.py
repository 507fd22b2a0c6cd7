"""The built-in schemes are the formulas we say they are."""

import math

import pytest
import sympy as sp

from fluxforge.errors import InputError
from fluxforge.expression import parse, to_text
from fluxforge.scheme import FAMILIES, Ghost, Hop, Scheme, find, message_symbols, output_symbols, rkl2_tableau
from fluxforge.scheme.reference import BUILT_IN

NAMES = [
    "euler",
    "midpoint",
    "midpoint-printed",
    "rk4",
    "rkl2-8",
    "two-hop",
    "two-hop-printed",
    "crank-nicolson",
    "crank-nicolson-printed",
    "corrected",
]


def message(scheme: str, stage: int, name: str) -> sp.Expr:
    return BUILT_IN[scheme].stages[stage].messages[name].expression


def output(scheme: str, stage: int, name: str) -> sp.Expr:
    return BUILT_IN[scheme].stages[stage].outputs[name].expression


def edge(text: str, *earlier: str, hop: Hop = Hop.EDGE) -> sp.Expr:
    return parse(text, message_symbols(hop, earlier))


def node(text: str, *names: str) -> sp.Expr:
    return parse(text, output_symbols(names, ()))


def test_the_built_in_schemes_are_the_announced_ones() -> None:
    assert list(BUILT_IN) == NAMES


@pytest.mark.parametrize("scheme", BUILT_IN.values(), ids=str)
def test_every_built_in_scheme_has_its_name_summary_and_claims(scheme: Scheme) -> None:
    assert BUILT_IN[scheme.name] is scheme
    assert scheme.summary.isprintable()
    assert 10 < len(scheme.summary) <= 100
    assert set(scheme.claims.space) <= set(FAMILIES)
    assert scheme.claims.conservative is True
    assert scheme.claims.stable_to is not None
    assert scheme.claims.generator is (scheme.name not in ("two-hop-printed", "crank-nicolson-printed"))
    assert scheme.claims.linear_exact is (True if scheme.name == "corrected" else None)


@pytest.mark.parametrize("scheme", BUILT_IN.values(), ids=str)
def test_the_expressions_are_exact_and_can_be_written_down(scheme: Scheme) -> None:
    for stage in scheme.stages:
        messages = [message.expression for message in stage.messages.values()]
        for expression in messages + [output.expression for output in stage.outputs.values()]:
            assert not expression.has(sp.Float)
            assert "\n" not in to_text(expression)


def test_euler_is_equation_one_of_the_paper() -> None:
    assert message("euler", 0, "z") == edge("alpha*A/delta*(T_N - T_P)")
    assert output("euler", 0, "T_new") == node("T + dt/V*z + dt*S", "z")
    assert len(BUILT_IN["euler"].stages) == 1


def test_the_printed_midpoint_rule_takes_a_whole_source_step_in_its_half_step() -> None:
    assert output("midpoint", 0, "half") == node("T + dt/(2*V)*z + dt/2*S", "z")
    assert sp.expand(output("midpoint-printed", 0, "half") - output("midpoint", 0, "half") - node("dt/2*S")) == 0
    for name in ("midpoint", "midpoint-printed"):
        assert message(name, 1, "z_half") == edge("alpha*A/delta*(half_N - half_P)", "half")
        assert output(name, 1, "T_new") == node("T + dt/V*z_half + dt*S", "z_half")
        assert BUILT_IN[name].ghost_rules()["half"] is Ghost.DIRICHLET


def test_the_two_hop_scheme_runs_over_paths_and_the_printed_one_over_rings() -> None:
    walk = edge("dt/2*(alpha*A_PN/delta_PN)*(alpha*A_NQ/delta_NQ)/V_N*(T_Q - T_N)", hop=Hop.PATH)
    assert BUILT_IN["two-hop"].stages[0].messages["z2"].hop is Hop.PATH
    assert sp.expand(message("two-hop", 0, "z2") - walk) == 0
    assert BUILT_IN["two-hop-printed"].stages[0].messages["z2"].hop is Hop.RING
    assert message("two-hop-printed", 0, "z2") == edge("alpha/2*(T_Q - T_P)", hop=Hop.RING)
    assert sp.expand(output("two-hop-printed", 0, "T_new") - node("T + dt*S + dt/V*(z1 + z2)", "z1", "z2")) == 0


def test_the_printed_crank_nicolson_scheme_has_the_wrong_sign_and_no_source() -> None:
    assert BUILT_IN["crank-nicolson"].theta == BUILT_IN["crank-nicolson-printed"].theta == sp.Rational(1, 2)
    assert output("crank-nicolson", 0, "T_new") == output("euler", 0, "T_new")
    assert output("crank-nicolson-printed", 0, "T_new") == node("T - dt/V*z", "z")
    assert [name for name, scheme in BUILT_IN.items() if scheme.implicit] == [
        "crank-nicolson",
        "crank-nicolson-printed",
    ]


def test_rates_are_zero_and_gradients_are_the_owners_on_ghosts() -> None:
    assert {BUILT_IN["rk4"].ghost_rules()[k] for k in ("k1", "k2", "k3")} == {Ghost.ZERO}
    assert BUILT_IN["rkl2-8"].ghost_rules()["rate"] is Ghost.ZERO
    assert BUILT_IN["rkl2-8"].ghost_rules()["D3"] is Ghost.ZERO
    assert {BUILT_IN["corrected"].ghost_rules()[g] for g in ("g_x", "g_y")} == {Ghost.OWNER}


def test_the_corrected_flux_of_a_linear_field_is_its_gradient_through_the_face() -> None:
    """T = a + b·x, gradients exact: F = α A b·n, whatever d is."""
    flux = message("corrected", 1, "z")
    b_x, b_y = sp.symbols("b_x b_y", real=True)
    symbols = message_symbols(Hop.EDGE, ("g_x", "g_y"))
    rise = b_x * symbols["d_x"] + b_y * symbols["d_y"]
    given = {symbols[f"g_{c}_{end}"]: slope for c, slope in (("x", b_x), ("y", b_y)) for end in ("P", "N")}
    given |= {symbols["T_N"]: symbols["T_P"] + rise}
    wanted = symbols["alpha"] * symbols["A"] * (b_x * symbols["n_x"] + b_y * symbols["n_y"])
    assert sp.simplify(flux.subs(given) - wanted) == 0


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("euler", 2.0),
        ("rk4", 2.785293563405282),
        ("rkl2-8", 35.0),
        ("crank-nicolson", math.inf),
        ("crank-nicolson-printed", 0.0),
    ],
)
def test_the_claimed_intervals(name: str, limit: float) -> None:
    assert BUILT_IN[name].claims.stable_to == limit


@pytest.mark.parametrize("s", [2, 3, 8])
def test_runge_kutta_legendre_has_as_many_stages_as_it_is_asked_for(s: int) -> None:
    scheme = find(f"rkl2-{s}")
    assert len(scheme.stages) == s
    assert scheme.name == f"rkl2-{s}"


@pytest.mark.parametrize("s", [1, 0, -3])
def test_runge_kutta_legendre_needs_two_stages(s: int) -> None:
    with pytest.raises(InputError):
        rkl2_tableau(s)
