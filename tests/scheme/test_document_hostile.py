"""scheme.json with hostile or random content: each file is read, or refused in one line."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheme_documents import HEADER, document, refused

from fluxforge.errors import InputError
from fluxforge.scheme import Scheme, from_document, load, to_document
from fluxforge.scheme.reference import BUILT_IN
from strategies import few


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mine.json"


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
    "T_N < T_P < 1",
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
    "1/0", "T_N/0", "T_N/(1 - 1)", "T_N/(A - A)", "T_N/0.0", "0**(-1)", "log(0)", "log(-1)", "sqrt(-1)", "nan", "inf",
    "oo", "zoo", "I*T_N", "T_N/sin(0)", "1/(2 - 2.0)",
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


@pytest.mark.parametrize(
    "text", ["T", "dt", "1/0", "2", "-1/10", "9**9", "__import__('os')", "nan", "I", "sqrt(-1)", ""]
)
def test_theta_as_text_is_a_number_from_zero_to_one(text: str, path: Path) -> None:
    refused(path, document() | {"theta": text}, r"(field 'theta'|theta should be a number)")


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
        st.sampled_from(
            [*INJECTIONS, *UNDEFINED, *NAMES[:-1], *HUGE[:8], "T_N", "T + z", "edge", "ring", "zero", "A*z/V"]
        ),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.just("T_new"), inner, max_size=3)
    ),
    max_leaves=6,
)


def scheme_or_one_line(read: Callable[[Any], Scheme], given: object, opening: str) -> Scheme | None:
    """The scheme that was read, or None where it was refused in one line."""
    try:
        return read(given)
    except InputError as error:
        line = str(error)
    assert line.startswith(opening)
    assert "\n" not in line
    return None


@few(40)
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
    scheme = scheme_or_one_line(from_document, content, "")
    if scheme is not None:
        assert from_document(json.loads(json.dumps(to_document(scheme)))) == scheme


@few(50)
@given(data=st.data())
def test_mutated_bytes_are_a_scheme_or_one_line_with_the_path(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = bytearray(
        json.dumps(document(data.draw(st.sampled_from(["euler", "two-hop", "corrected"]))), indent=1).encode()
    )
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        span = data.draw(st.integers(0, 12))
        text[at : at + span] = data.draw(
            st.binary(max_size=6) | st.sampled_from([b'"', b"}", b"9" * 40, b"**", b"NaN", b",{"])
        )
        text = text or bytearray(b"{")
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_bytes(text)
    scheme_or_one_line(load, path, f"{path}: ")
