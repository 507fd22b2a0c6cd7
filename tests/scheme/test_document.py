"""scheme.json: there and back, and everything malformed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sympy as sp
from scheme_documents import document, refused

from fluxforge import pde
from fluxforge.errors import DocumentError, InputError
from fluxforge.scheme import (
    TABLEAUX,
    Claims,
    Message,
    Output,
    Scheme,
    Stage,
    find,
    from_document,
    integrate,
    load,
    save,
    symbol,
    to_document,
)
from fluxforge.scheme.reference import BUILT_IN


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mine.json"


@pytest.mark.parametrize("scheme", [*BUILT_IN.values(), find("rkl2-2"), find("rkl2-5")], ids=str)
def test_a_scheme_comes_back_equal(scheme: Scheme, path: Path) -> None:
    save(scheme, path)
    again = load(path)
    assert again == scheme
    assert (again.claims, again.summary, again.theta) == (scheme.claims, scheme.summary, scheme.theta)
    assert again.ghost_rules() == scheme.ghost_rules()
    assert hash(again) == hash(scheme)
    assert from_document(to_document(scheme)) == scheme
    assert json.loads(path.read_text())["format_version"] == 2


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


@pytest.mark.parametrize(
    "claims", [Claims(), Claims(conservative=False, time_order=0, space={"right": 1.5}, stable_to=0.0)]
)
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
    refused(path, content, "the name 'T_new' is already used")
    content = document("midpoint")
    content["stages"].pop()
    refused(path, content, "the last stage should have exactly one output, 'T_new'")
    content = document()
    content["stages"][0]["messages"] = {f"z{k}": {"expression": "A"} for k in range(65)}
    refused(path, content, "at most 64 entries")


@pytest.mark.parametrize("version", [3, 17, 10**30])
def test_a_newer_format_is_refused_by_its_number(version: int, path: Path) -> None:
    refused(
        path,
        document() | {"format_version": version},
        rf"format_version {version}, .*reads at most 2: upgrade fluxforge",
    )


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", None, True, [1]])
def test_a_version_that_is_none_is_refused(version: object, path: Path) -> None:
    refused(path, document() | {"format_version": version}, "field 'format_version' should be a positive whole number")


@pytest.mark.parametrize("kind", ["fluxforge-mesh", "fluxforge", "Fluxforge-scheme", "", None, 3, ["fluxforge-scheme"]])
def test_another_format_is_refused(kind: object, path: Path) -> None:
    refused(path, document() | {"format": kind}, "is not a fluxforge scheme")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", '"text"', "[1, 2]", "{}", "\ufeff{}", "{'a': 1}", "{1: 2}"]
)
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


FISHER = pde.from_document(
    {"name": "fisher", "diffusion": "D", "reaction": "r*u*(1 - u)", "parameters": {"D": {"default": 0.1}, "r": {}}}
)


def test_a_scheme_of_another_equation_comes_back_with_it(path: Path) -> None:
    scheme = integrate(TABLEAUX["rk4"], FISHER)
    save(scheme, path)
    assert load(path) == scheme
    assert load(path).equation == FISHER
    assert json.loads(path.read_text())["equation"]["reaction"] == "r*u*(1 - u)"
    save(BUILT_IN["euler"], path)
    assert json.loads(path.read_text())["equation"] == "heat"


def test_files_of_version_one_are_schemes_of_heat(path: Path) -> None:
    save(BUILT_IN["rk4"], path)
    old = json.loads(path.read_text()) | {"format_version": 1}
    del old["equation"]
    path.write_text(json.dumps(old))
    assert load(path) == BUILT_IN["rk4"]
    refused(path, old | {"format_version": 2}, "field 'equation' is missing")


@pytest.mark.parametrize(
    ("equation", "words"),
    [
        ("haet", "field 'equation' should be an object or one of heat"),
        ("/etc/passwd", "field 'equation' should be"),
        (["heat"], "field 'equation' should be"),
        (None, "field 'equation' should be"),
        ({"name": "x", "reaction": "open(1)"}, "field 'equation': field 'reaction'"),
        ({"name": "x"}, "unknown symbol 'alpha'"),
    ],
)
def test_an_equation_that_is_none_is_refused(equation: object, words: str, path: Path) -> None:
    refused(path, document() | {"equation": equation, "format_version": 2}, words)


def test_an_equation_in_a_file_of_version_1_is_refused(path: Path) -> None:
    refused(
        path, document() | {"equation": "heat", "format_version": 1}, "'equation' does not exist in format_version 1"
    )
