"""The allowed parts of a scheme, and the one-line message for everything else."""

import pytest
import sympy as sp

from fluxforge.errors import ExpressionError, SchemeError
from fluxforge.scheme import (
    Claims,
    Ghost,
    Hop,
    Message,
    Output,
    Scheme,
    SchemeBuilder,
    Stage,
    find,
    message_symbols,
    output_symbols,
    save,
    symbol,
)
from fluxforge.scheme.reference import BUILT_IN

T, S, V, DT, Z = (symbol(name) for name in ("T", "S", "V", "dt", "z"))
FLUX = Message(symbol("alpha") * symbol("A") / symbol("delta") * (symbol("T_N") - symbol("T_P")))
NEXT = Output(T + DT / V * Z + DT * S)
EULER_STAGE = Stage({"z": FLUX}, {"T_new": NEXT})


def refuse_stages(match: str, *stages: Stage, theta: sp.Expr = sp.S.Zero) -> None:
    with pytest.raises(SchemeError, match=match) as caught:
        Scheme("mine", stages, theta)
    assert "\n" not in str(caught.value)


def test_the_symbols_are_the_same_objects_every_time() -> None:
    assert symbol("T") is symbol("T")
    assert symbol("T").is_real
    assert message_symbols(Hop.EDGE, ())["T_N"] is symbol("T_N")


def test_a_scheme_by_hand_is_the_built_in_one() -> None:
    euler = BUILT_IN["euler"]
    scheme = Scheme("euler", (EULER_STAGE,), summary=euler.summary, claims=euler.claims)
    assert scheme == euler
    assert hash(scheme) == hash(euler)
    assert str(scheme) == "euler"
    assert not scheme.implicit


def test_equal_stages_have_equal_hashes() -> None:
    one = Stage({"a": FLUX, "b": Message(symbol("A"))}, {"T_new": Output(T)})
    other = Stage({"b": Message(symbol("A")), "a": FLUX}, {"T_new": Output(T)})
    assert one == other
    assert hash(one) == hash(other)


def test_a_stage_of_other_expressions_or_ghosts_is_another_stage() -> None:
    assert Stage({"z": FLUX}, {"T_new": NEXT}) != Stage({"z": FLUX}, {"T_new": Output(T)})
    assert Stage({}, {"a": Output(T)}) != Stage({}, {"a": Output(T, Ghost.ZERO)})
    assert Stage({"z": FLUX}, {}) != Stage({"z": Message(FLUX.expression, Hop.RING)}, {})


def test_a_scheme_needs_stages_and_outputs() -> None:
    refuse_stages("'mine' has no stages")
    refuse_stages("stage 1 has no outputs", Stage({"z": FLUX}, {}))
    refuse_stages("stage 2 has no outputs", Stage({}, {"a": Output(T)}), Stage({}, {}))


def test_the_last_stage_has_the_one_output_t_new() -> None:
    reason = "the last stage should have exactly one output, 'T_new'"
    refuse_stages(reason, Stage({"z": FLUX}, {"T_next": NEXT}))
    refuse_stages(reason, Stage({"z": FLUX}, {"T_new": NEXT, "more": Output(T)}))
    refuse_stages(reason, EULER_STAGE, Stage({}, {"after": Output(T)}))
    refuse_stages("the name 'T_new' is already used", EULER_STAGE, EULER_STAGE)


@pytest.mark.parametrize(
    ("expression", "hop", "named"),
    [
        (symbol("T"), Hop.EDGE, "T"),
        (symbol("T_Q"), Hop.EDGE, "T_Q"),
        (symbol("V") * symbol("S"), Hop.EDGE, "S, V"),
        (symbol("A_PN"), Hop.EDGE, "A_PN"),
        (symbol("A"), Hop.PATH, "A"),
        (symbol("chi_PN"), Hop.RING, "chi_PN"),
        (symbol("n_x_PN"), Hop.RING, "n_x_PN"),
        (symbol("delta_PQ"), Hop.PATH, "delta_PQ"),
        (symbol("half_N"), Hop.EDGE, "half_N"),
        (symbol("z"), Hop.EDGE, "z"),
        (sp.Symbol("T_N"), Hop.EDGE, "T_N"),
    ],
)
def test_a_message_contains_only_what_its_hop_carries(expression: sp.Expr, hop: Hop, named: str) -> None:
    stage = Stage({"m": Message(expression, hop)}, {"T_new": Output(T)})
    refuse_stages(
        rf"'mine', stage 1: message 'm' of hop '{hop}' contains {named}, which is not defined for that hop$", stage
    )


@pytest.mark.parametrize("name", ["T_N", "A", "delta", "y", "half", "V_P"])
def test_an_output_contains_only_what_a_cell_has(name: str) -> None:
    stage = Stage({"z": FLUX}, {"T_new": Output(T + symbol(name))})
    refuse_stages(rf"stage 1: output 'T_new' contains {name}, which a cell does not have$", stage)


def test_an_output_does_not_see_its_own_stage_nor_the_messages_of_another() -> None:
    own = Stage({"z": FLUX}, {"a": Output(T), "b": Output(symbol("a"))})
    refuse_stages("output 'b' contains a", own, EULER_STAGE)
    first = Stage({"z1": FLUX}, {"a": Output(T)})
    refuse_stages("output 'T_new' contains z1", first, Stage({}, {"T_new": Output(symbol("z1"))}))


def test_later_stages_see_earlier_outputs_at_both_ends() -> None:
    first = Stage({"z": FLUX}, {"a": Output(T)})
    second = Stage({"y": Message(symbol("a_N") - symbol("a_P"))}, {"T_new": Output(symbol("a") + symbol("y"))})
    scheme = Scheme("two", (first, second))
    assert [earlier for _, _, earlier in scheme.walk()] == [(), ("a",)]


BAD_NAMES = [
    "", "1z", "_z", "z_", "a__b", "z P", "z-1", "z.real", "ä", "z\n", "T_P", "flux_N", "a_Q", "N", "P", "Q", "x" * 41,
    "__import__('os')", "z;import os", "z\u202e",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("place", ["message", "output"])
def test_names_are_plain_words(name: str, place: str) -> None:
    stage = Stage({name: FLUX}, {"T_new": Output(T)}) if place == "message" else Stage({}, {name: Output(T)})
    refuse_stages("is not a usable name", stage, *([] if place == "message" else [EULER_STAGE]))


TAKEN = ["T", "S", "V", "alpha", "dt", "A", "delta", "n_x", "d_y", "chi", "A_PN", "delta_NQ", "d_PQ_x", "chi_NQ"]


@pytest.mark.parametrize("name", TAKEN)
def test_names_of_symbols_are_taken(name: str) -> None:
    refuse_stages(f"the name '{name}' is already used", Stage({name: FLUX}, {"T_new": Output(T)}))
    refuse_stages(f"the name '{name}' is already used", Stage({}, {name: Output(T)}), EULER_STAGE)


def test_names_do_not_clash_within_a_stage_nor_with_earlier_outputs() -> None:
    refuse_stages("the name 'a' is already used", Stage({"a": FLUX}, {"a": Output(T)}), EULER_STAGE)
    first = Stage({"z": FLUX}, {"a": Output(T)})
    refuse_stages("stage 2: the name 'a' is already used", first, Stage({"a": FLUX}, {"T_new": Output(T)}))
    refuse_stages("stage 2: the name 'a' is already used", first, Stage({}, {"a": Output(T)}), EULER_STAGE)


@pytest.mark.parametrize("name", ["pi", "sin", "exp", "min"])
def test_names_the_parser_keeps_for_itself_are_refused(name: str) -> None:
    """A scheme with such a name could be saved, and would never load again."""
    with pytest.raises((SchemeError, ExpressionError), match=name):
        Scheme("mine", (Stage({name: FLUX}, {"T_new": Output(T + symbol(name))}),))


def test_a_message_name_may_come_again_in_a_later_stage() -> None:
    first = Stage({"z": FLUX}, {"a": Output(T + Z)})
    Scheme("mine", (first, EULER_STAGE))


@pytest.mark.parametrize(
    "theta", [sp.Rational(-1, 100), sp.Rational(101, 100), sp.nan, sp.oo, sp.I, symbol("T"), sp.zoo, -sp.pi]
)
def test_theta_is_a_number_from_zero_to_one(theta: sp.Expr) -> None:
    refuse_stages("theta should be a number from 0 to 1, got", EULER_STAGE, theta=theta)


@pytest.mark.parametrize("theta", [0, 1, sp.Rational(1, 2), sp.pi / 4, sp.Float(0.55)])
def test_theta_decides_whether_a_scheme_is_implicit(theta: sp.Expr) -> None:
    assert Scheme("mine", (EULER_STAGE,), sp.sympify(theta)).implicit == (theta != 0)


def test_ghost_rules_and_hops_are_gathered_over_the_stages() -> None:
    assert BUILT_IN["rk4"].ghost_rules() == {
        "T": "dirichlet",
        "k1": "zero",
        "k2": "zero",
        "k3": "zero",
        "T_new": "dirichlet",
    }
    assert BUILT_IN["corrected"].ghost_rules()["g_x"] is Ghost.OWNER
    assert BUILT_IN["two-hop"].hops() == {Hop.EDGE, Hop.PATH}
    assert BUILT_IN["two-hop-printed"].hops() == {Hop.EDGE, Hop.RING}
    assert BUILT_IN["euler"].hops() == {Hop.EDGE}


def test_outputs_know_no_edge_symbols() -> None:
    assert set(output_symbols(["z"], ["half"])) == {"T", "S", "V", "alpha", "dt", "z", "half"}
    assert "half_Q" in message_symbols(Hop.RING, ["half"])
    assert "chi_PN" in message_symbols(Hop.PATH, ())
    assert "chi_PN" not in message_symbols(Hop.RING, ())


def test_the_builder_parses_with_just_the_symbols_of_the_place() -> None:
    with pytest.raises(ExpressionError, match=r"^stage 1, message 'z': unknown symbol 'T_Q'"):
        SchemeBuilder().stage({"z": "T_Q - T_P"}, {"T_new": "T"})
    with pytest.raises(ExpressionError, match=r"^stage 2, output 'T_new': unknown symbol 'z'"):
        SchemeBuilder().stage({"z": "T_N"}, {"a": "z"}).stage({}, {"T_new": "z"})
    with pytest.raises(ExpressionError, match=r"^here, message 'z': unknown symbol 'half_N'"):
        SchemeBuilder().stage({"z": "half_N"}, {"T_new": "T"}, where="here")


def test_the_builder_takes_hops_and_ghosts_beside_the_text() -> None:
    scheme = (
        SchemeBuilder()
        .stage({"z": (Hop.RING, "T_Q - T_N")}, {"rate": (Ghost.OWNER, "z/V")})
        .stage({}, {"T_new": "T + dt*rate"})
        .build("mine", summary="", claims=Claims(), theta=sp.Rational(1, 3))
    )
    assert scheme.stages[0].messages["z"].hop is Hop.RING
    assert scheme.stages[0].outputs["rate"].ghost is Ghost.OWNER
    assert scheme.theta == sp.Rational(1, 3)


def test_find_takes_a_scheme_a_name_or_a_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    euler = BUILT_IN["euler"]
    assert find(euler) is euler
    assert find("euler") is euler
    save(BUILT_IN["rk4"], tmp_path / "mine.json")
    assert find(tmp_path / "mine.json") == BUILT_IN["rk4"]
    assert find(str(tmp_path / "mine.json")) == BUILT_IN["rk4"]


def test_find_lists_the_schemes_and_suggests_a_similar_name() -> None:
    with pytest.raises(SchemeError, match=r"no scheme 'midpiont': .*two-hop-printed.*Did you mean 'midpoint'\?"):
        find("midpiont")
    with pytest.raises(SchemeError, match=r"neither a built-in one .* nor a \.json file\.$"):
        find("zzzzzz")
