"""Printing."""

import json
from pathlib import Path

import pytest

from fluxforge._files import to_json_values
from fluxforge.cli._output import duration, number, one_line, show_json, show_pairs, show_table


def test_json_values_are_plain() -> None:
    value = {"a": (1, 2.5), "b": [float("nan"), {"c": float("-inf")}], "d": Path("x/y"), "e": None, "f": True}
    assert to_json_values(value) == {"a": [1, 2.5], "b": [None, {"c": None}], "d": "x/y", "e": None, "f": True}


def test_json_is_one_document_in_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"Δt": float("inf")})
    written = capsys.readouterr().out
    assert written.isascii()
    assert json.loads(written) == {"Δt": None}


def test_markup_and_control_characters_in_names_have_no_effect(capsys: pytest.CaptureFixture[str]) -> None:
    show_pairs([("[red]tag[/red]", ":smile: \x1b[2J")])
    show_table(("[bold]", "b"), [("[/nothing]", "\x07")])
    written = capsys.readouterr().out
    assert "[red]tag[/red]" in written
    assert ":smile:" in written
    assert "[/nothing]" in written
    assert "\x1b" not in written
    assert "\x07" not in written


def test_no_line_of_a_pipe_ends_in_spaces(capsys: pytest.CaptureFixture[str]) -> None:
    show_pairs([("a", "long words"), ("b", "c")])
    show_table(("x", "y"), [("1", "long words"), ("2", "c")])
    written = capsys.readouterr().out
    assert "a  long words\nb  c\n" in written
    assert all(line == line.rstrip() for line in written.splitlines())


def test_line_breaks_and_tabs_become_single_spaces() -> None:
    assert one_line("a\n  b\tc") == "a b c"


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (2.0, "2 s"), (0.5, "500 ms"), (1.5e-5, "15 µs"), (2e-8, "20 ns"), (0.0, "0 ns")]
)
def test_durations_have_a_unit_that_suits(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_numbers_are_short() -> None:
    assert number(1 / 3) == "0.3333"
    assert number(None) == "-"
