"""scheme.json: there and back, and everything hostile in between."""

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.errors import DocumentError, InputError
from fluxforge.scheme import Claims, Message, Output, Scheme, Stage, from_document, load, save, symbol, to_document
from fluxforge.scheme.reference import BUILT_IN, rkl2
from strategies import few

HEADER = {"format": "fluxforge-scheme", "format_version": 1}


def document(name: str = "euler") -> dict[str, Any]:
    return HEADER | copy.deepcopy(to_document(BUILT_IN[name]))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mine.json"


def refused(path: Path, content: object, match: str) -> str:
    """The one line that refuses this file."""
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(DocumentError, match=match) as caught:
        load(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    assert "\r" not in line
    assert len(line) < 1000
    return line


@pytest.mark.parametrize("scheme", [*BUILT_IN.values(), rkl2(2), rkl2(5)], ids=str)
def test_a_scheme_comes_back_equal(scheme: Scheme, path: Path) -> None:
    save(scheme, path)
    again = load(path)
    assert again == scheme
    assert (again.claims, again.summary, again.theta) == (scheme.claims, scheme.summary, scheme.theta)
    assert again.ghost_rules() == scheme.ghost_rules()
    assert hash(again) == hash(scheme)
    assert from_document(to_document(scheme)) == scheme
    assert json.loads(path.read_text())["format_version"] == 1


@pytest.mark.parametrize("scheme", BUILT_IN.values(), ids=str)
def test_saving_twice_writes_the_same_bytes(scheme: Scheme, path: Path) -> None:
    save(scheme, path)
    first = path.read_bytes()
    save(load(path), path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("theta", [sp.Rational(1, 3), sp.Float(0.1), sp.pi / 4, 1 - sp.sqrt(2) / 2, sp.Integer(1)])
def test_theta_comes_back_exactly(theta: sp.Expr, path: Path) -> None:
    save(Scheme("mine", BUILT_IN["euler"].stages, theta, "words"), path)
    assert load(path).theta == theta


@pytest.mark.parametrize("claims", [Claims(), Claims(conservative=False, time_order=0, space={"right": 1.5}, stable_to=0.0)])
def test_claims_come_back_and_silence_stays_silent(claims: Claims, path: Path) -> None:
    save(Scheme("mine", BUILT_IN["euler"].stages, summary="words", claims=claims), path)
    assert load(path).claims == claims


def test_a_scheme_without_a_summary_comes_back(path: Path) -> None:
    scheme = Scheme("mine", BUILT_IN["euler"].stages)
    save(scheme, path)
    assert load(path) == scheme


def test_a_scheme_of_many_stages_comes_back_or_is_not_saved(path: Path) -> None:
    still = tuple(Stage({}, {f"a{k}": Output(symbol("T"))}) for k in range(64))
    scheme = Scheme("mine", (*still, *BUILT_IN["euler"].stages), summary="words")
    try:
        save(scheme, path)
    except InputError:
        assert not path.exists()
    else:
        assert load(path) == scheme


def test_what_may_be_left_out_has_a_default(path: Path) -> None:
    content = document()
    for key in ("summary", "theta", "claims"):
        del content[key]
    content["stages"][0]["messages"]["z"].pop("hop")
    content["stages"][0]["outputs"]["T_new"].pop("ghost")
    path.write_text(json.dumps(content))
    assert load(path).stages == BUILT_IN["euler"].stages


@pytest.mark.parametrize("given", [0.5, "1/2", "0.5"])
def test_theta_may_be_a_number_or_a_text(given: object, path: Path) -> None:
    path.write_text(json.dumps(document() | {"theta": given}))
    assert float(load(path).theta) == 0.5


INJECTIONS = [
    "__import__('pathlib').Path('owned').touch()",
    "T_N.__class__",
    "(T_N).real",
    "T_N[0]",
    "[T_N]",
    "{T_N}",
    "lambda: T_N",
    "T_N if 1 else T_P",
    "eval('1')",
    "exec(T_N)",
    "open('owned')",
    "sympify(1)",
    "gamma(T_N)",
    "factorial(9)",
    "T_N; import os",
    "T_N\nimport os",
    "T_N = 3",
    "T_N == T_P",
    "T_N < T_P",
    "T_N @ T_P",
    "T_N % 2",
    "T_N // 2",
    "T_N and T_P",
    "'T_N'",
    "f'{T_N}'",
    "`T_N`",
    "T_N\\",
    "$T_N",
    "1j*T_N",
    "0x10*T_N",
    "1_000*T_N",
    "T_N # comment",
    "т_N",
    "T_N\u200b",
    "\ud800",
    "\x00",
    "",
    "   ",
]
HUGE = [
    "9**9**9",
    "10**(10**10)",
    "2**(2**30)",
    "T_N**1000000",
    "T_N**(-999999999)",
    "((((T_N**16)**16)**16)**16)**16",
    "(T_N + T_P)**16**16",
    "exp(exp(exp(exp(100))))",
    "1e999*T_N",
    "9" * 5000,
    "T_N*" + "9" * 200,
    "(" * 2000 + "T_N" + ")" * 2000,
    "sin(" * 500 + "T_N" + ")" * 500,
    "-(" * 500 + "T_N" + ")" * 500,
    "+".join(["T_N"] * 20000),
    "**".join(["2"] * 60),
]
UNDEFINED = [
    "1/0", "T_N/0", "T_N/(1 - 1)", "T_N/(A - A)", "T_N/0.0", "0**(-1)", "log(0)", "log(-1)", "sqrt(-1)", "nan", "inf", "oo",
    "zoo", "I*T_N", "T_N/sin(0)", "1/(2 - 2.0)",
]  # fmt: skip
STRANGERS = ["T", "T_Q", "half_N", "z", "Q", "beta", "A_PN", "T_NN", "t_n"]


@pytest.mark.parametrize("text", [*INJECTIONS, *HUGE, *UNDEFINED, *STRANGERS], ids=lambda text: repr(text[:24]))
def test_a_hostile_message_is_refused_unread(text: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    content = document()
    content["stages"][0]["messages"]["z"]["expression"] = text
    refused(path, content, r"stage 1, message 'z'")
    assert [item.name for item in path.parent.iterdir()] == ["mine.json"]


@pytest.mark.parametrize("text", ["T_N", "A*T", "y", "half", "S_P", "T + dt*__class__", "T/(V - V)", "T**99"])
def test_a_hostile_output_is_refused(text: str, path: Path) -> None:
    content = document()
    content["stages"][0]["outputs"]["T_new"]["expression"] = text
    refused(path, content, r"stage 1, output 'T_new'")


@pytest.mark.parametrize("text", ["T", "dt", "1/0", "2", "-1/10", "9**9", "__import__('os')", "nan", "I", "sqrt(-1)", ""])
def test_theta_as_text_is_a_number_from_zero_to_one(text: str, path: Path) -> None:
    refused(path, document() | {"theta": text}, ".")


NAMES = [
    "__import__('os').system('x')", "z.__class__", "a b", "a\nb", "", "T", "T_P", "pi", "sin", "ä", "1a", "_a", "a__b",
    "x" * 10_000, "\ud800", "\u202e", "lambda", "None; import os",
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in NAMES if name != "lambda"], ids=lambda name: repr(name[:20]))
@pytest.mark.parametrize("place", ["messages", "outputs"])
def test_a_hostile_name_is_refused(place: str, name: str, path: Path) -> None:
    content = document()
    stage = content["stages"][0]
    stage[place] = {name: next(iter(stage[place].values()))}
    stage["outputs"] = stage["outputs"] if place == "outputs" else {"T_new": {"expression": "T"}}
    refused(path, content, "stage 1|the last stage")


def test_a_python_word_is_just_a_word(path: Path) -> None:
    content = document()
    content["stages"][0]["messages"] = {"lambda": {"expression": "T_N - T_P"}}
    content["stages"][0]["outputs"] = {"T_new": {"expression": "T + dt*lambda"}}
    path.write_text(json.dumps(content))
    assert set(load(path).stages[0].messages) == {"lambda"}


WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str, list[Any]]] = {
    "name": (lambda d: d, "name", [None, True, 3, [], {}, "", "a\nb", "x" * 101, "\x1b[31m"]),
    "summary": (lambda d: d, "summary", [None, False, 3, [], {}, "a\nb", "x" * 1001]),
    "theta": (lambda d: d, "theta", [None, True, [], {}, -0.1, 1.5, 10**400, 2]),
    "stages": (lambda d: d, "stages", [None, True, 3, "x", {}, [], [None], [[]], ["x"], [{}] * 65]),
    "claims": (lambda d: d, "claims", [None, True, 3, "x", []]),
    "messages": (lambda d: d["stages"][0], "messages", [None, True, 3, "x", [], {"z": None}, {"z": "A"}, {"z": []}]),
    "outputs": (lambda d: d["stages"][0], "outputs", [None, 3, "x", [], {}, {"T_new": 3}]),
    "hop": (lambda d: d["stages"][0]["messages"]["z"], "hop", [None, True, 3, "EDGE", "edges", "", [], {}]),
    "ghost": (lambda d: d["stages"][0]["outputs"]["T_new"], "ghost", [None, 1, "Zero", "neumann", [], {}]),
    "expression": (lambda d: d["stages"][0]["messages"]["z"], "expression", [None, True, 3, 1.5, [], {}]),
    "conservative": (lambda d: d["claims"], "conservative", [None, 1, "true", []]),
    "time_order": (lambda d: d["claims"], "time_order", [True, 1.0, -1, 21, "1", [], 10**400]),
    "space": (lambda d: d["claims"], "space", [None, 3, [], {"hexagons": 2.0}, {"right": None}, {"right": "2"}]),
    "space values": (lambda d: d["claims"]["space"], "right", [True, -1, 1e10, [], 10**400]),
    "stable_to": (lambda d: d["claims"], "stable_to", [True, -1.0, "infinite", "inf", 1e9, [], {}]),
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, (_, _, values) in WRONG.items() for value in values],
    ids=lambda part: repr(part)[:24],
)
def test_a_wrong_type_or_value_anywhere_is_refused(field: str, value: object, path: Path) -> None:
    where, key, _ = WRONG[field]
    content = document()
    where(content)[key] = value
    refused(path, content, ".")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("field", ["theta", "stable_to", "right", "time_order"])
def test_numbers_that_are_not_numbers_are_refused(field: str, number: str, path: Path) -> None:
    content = document()
    target = content if field == "theta" else content["claims"]["space"] if field == "right" else content["claims"]
    target[field] = "@"
    refused(path, json.dumps(content).replace('"@"', number), ".")


@pytest.mark.parametrize(
    ("where", "stray"),
    [
        (lambda d: d, "extra"),
        (lambda d: d["stages"][0], "hop"),
        (lambda d: d["stages"][0]["messages"]["z"], "weight"),
        (lambda d: d["stages"][0]["outputs"]["T_new"], "__class__"),
        (lambda d: d["claims"], "stable"),
        (lambda d: d["claims"]["space"], "hexagons"),
    ],
)
def test_an_unknown_field_is_refused_by_name(where: Callable[[Any], Any], stray: str, path: Path) -> None:
    content = document()
    where(content)[stray] = 1.0
    refused(path, content, f"unknown field '{stray}'; known: ")


def test_a_ghost_is_no_matter_of_messages_nor_a_hop_of_outputs(path: Path) -> None:
    content = document()
    content["stages"][0]["messages"]["z"]["ghost"] = "zero"
    refused(path, content, "unknown field 'ghost'")
    content = document()
    content["stages"][0]["outputs"]["T_new"]["hop"] = "ring"
    refused(path, content, "unknown field 'hop'")


def test_a_missing_field_is_refused_by_name(path: Path) -> None:
    for key in ("name", "stages"):
        content = document()
        del content[key]
        refused(path, content, f"field '{key}' should be")
    for key in ("messages", "outputs"):
        content = document()
        del content["stages"][0][key]
        refused(path, content, f"stage 1: field '{key}' should be an object")
    content = document()
    del content["stages"][0]["messages"]["z"]["expression"]
    refused(path, content, "entry 'z': field 'expression' should be a text")


def test_a_scheme_that_parses_but_is_none_is_refused(path: Path) -> None:
    content = document()
    content["stages"] *= 2
    refused(path, content, "the name 'T_new' is taken")
    content = document("midpoint")
    content["stages"].pop()
    refused(path, content, "the last stage should have exactly one output, 'T_new'")
    content = document()
    content["stages"][0]["messages"] = {f"z{k}": {"expression": "A"} for k in range(65)}
    refused(path, content, "at most 64 entries")


@pytest.mark.parametrize("version", [2, 17, 10**30])
def test_a_newer_format_is_refused_by_its_number(version: int, path: Path) -> None:
    refused(path, document() | {"format_version": version}, rf"format_version {version}, .*reads up to 1: upgrade fluxforge")


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", None, True, [1]])
def test_a_version_that_is_none_is_refused(version: object, path: Path) -> None:
    refused(path, document() | {"format_version": version}, "field 'format_version' should be a positive whole number")


@pytest.mark.parametrize("kind", ["fluxforge-mesh", "fluxforge", "Fluxforge-scheme", "", None, 3, ["fluxforge-scheme"]])
def test_another_format_is_refused(kind: object, path: Path) -> None:
    refused(path, document() | {"format": kind}, "is not a fluxforge scheme")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"text"', "[1, 2]", "{}", "\ufeff{}", "{'a': 1}", "{1: 2}"])
def test_what_is_not_a_document_is_refused(text: str, path: Path) -> None:
    refused(path, text, "is not (JSON|a fluxforge scheme)")


@pytest.mark.parametrize("depth", [500, 980, 990, 995, 1000, 5000, 200_000])
@pytest.mark.parametrize("field", ["whole", "name", "theta", "stages", "claims", "format_version", "hop"])
def test_deep_nesting_is_refused(field: str, depth: int, path: Path) -> None:
    nest = "[" * depth + "]" * depth
    content = document()
    if field == "hop":
        content["stages"][0]["messages"]["z"]["hop"] = "@"
    else:
        content[field] = "@"
    refused(path, nest if field == "whole" else json.dumps(content).replace('"@"', nest), ".")


@pytest.mark.parametrize("field", ["format_version", "theta", "time_order"])
def test_a_number_of_five_thousand_digits_is_refused(field: str, path: Path) -> None:
    content = document()
    (content["claims"] if field == "time_order" else content)[field] = "@"
    refused(path, json.dumps(content).replace('"@"', "9" * 5000), ".")


def test_bytes_that_are_not_text_are_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(DocumentError, match="is not JSON"):
        load(path)


def test_a_file_that_cannot_be_read_is_refused(path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        load(path)
    with pytest.raises(DocumentError, match="cannot be read"):
        load(path.parent)


def test_an_impossible_file_name_is_bad_input() -> None:
    with pytest.raises(InputError):
        load("a\0b.json")


def test_what_a_file_would_not_say_is_not_saved(path: Path) -> None:
    """A node no formula has: it can neither be written down nor evaluated."""
    stage = Stage({"z": Message(sp.gamma(symbol("T_N")))}, {"T_new": Output(symbol("T") + symbol("z"))})
    with pytest.raises(InputError, match="gamma"):
        save(Scheme("mine", (stage,), summary="words"), path)
    assert not path.exists()


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document: its container and its key."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from nodes(value[key])


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 70),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from([*INJECTIONS, *UNDEFINED, *NAMES[:-1], *HUGE[:8], "T_N", "T + z", "edge", "ring", "zero", "A*z/V"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.just("T_new"), inner, max_size=3),
    max_leaves=6,
)


@few(60)
@given(data=st.data(), name=st.sampled_from(sorted(BUILT_IN)))
def test_a_mutated_document_is_a_scheme_or_one_line(data: st.DataObject, name: str) -> None:
    content = {key: value for key, value in document(name).items() if key not in HEADER}
    for _ in range(data.draw(st.integers(1, 3), "mutations")):
        container, key = data.draw(st.sampled_from(list(nodes(content))), "place")
        kind = data.draw(st.sampled_from(["replace", "remove", "add", "rename", "swap"]), "kind")
        if kind == "replace":
            container[key] = data.draw(json_values)
        elif kind == "remove":
            del container[key]
        elif kind == "add" and isinstance(container, dict):
            container[data.draw(st.sampled_from([*NAMES[:-1], "more"]) | st.text(max_size=5))] = data.draw(json_values)
        elif kind == "rename" and isinstance(container, dict):
            container[data.draw(st.sampled_from([*NAMES[:-1], "more", "T_new"]))] = container.pop(key)
        elif kind == "swap":
            other, place = data.draw(st.sampled_from(list(nodes(content))))
            container[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(container[key])
        if not content:
            break
    try:
        scheme = from_document(content)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert from_document(json.loads(json.dumps(to_document(scheme)))) == scheme


@few(80)
@given(data=st.data())
def test_mutated_bytes_are_a_scheme_or_one_line_with_the_path(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = bytearray(json.dumps(document(data.draw(st.sampled_from(["euler", "two-hop", "corrected"]))), indent=1).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        span = data.draw(st.integers(0, 12))
        text[at : at + span] = data.draw(st.binary(max_size=6) | st.sampled_from([b'"', b"}", b"9" * 40, b"**", b"NaN", b",{"]))
        text = text or bytearray(b"{")
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_bytes(text)
    try:
        assert isinstance(load(path), Scheme)
    except DocumentError as error:
        assert str(error).startswith(os.fspath(path))
        assert "\n" not in str(error)
