"""Progress on stderr, and only where somebody sees it."""

import io
import sys

import pytest

from fluxforge.cli._output import LOG_INTERVAL, Lines, progress_bar, question_bar, show_status, warn
from fluxforge.cli._signals import count_done


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Stand in for stderr; within a test, because the test's own streams are put in place after its fixtures."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    return made


def test_a_terminal_shows_the_bar_with_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = _terminal(monkeypatch)
    with progress_bar("euler", 2000) as tell:
        assert tell is not None
        for done in (500, 1000, 1500):
            tell(done)
    shown = terminal.getvalue()
    assert "preparing euler" in shown
    assert "1,500/2,000" in shown
    assert "/s" in shown
    assert capsys.readouterr().out == ""


def test_a_narrow_terminal_cuts_the_words_and_not_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _terminal(monkeypatch)
    with question_bar("first-order") as tell:
        assert tell is not None
        tell("training (sparsity 3.40e-03, supervised 1.68e-02)", 1501, 20000)
    shown = terminal.getvalue()
    assert "training (" in shown
    assert "…" in shown
    assert "1,500/20,000" in shown


def test_a_terminal_breaks_sentences_between_words_and_a_pipe_nowhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = " ".join(["word"] * 30)
    warn(sentence)
    assert capsys.readouterr().err == f"warning: {sentence}\n"
    terminal = _terminal(monkeypatch)
    warn(sentence)
    lines = terminal.getvalue().splitlines()
    assert len(lines) == 3
    assert all(line.rstrip().endswith("word") for line in lines)


def test_a_terminal_shows_what_is_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _terminal(monkeypatch)
    with show_status("reading m.msh") as tell:
        tell("drawing m.png")
    assert "drawing m.png" in terminal.getvalue()


def test_json_is_quiet_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _terminal(monkeypatch)
    with progress_bar("euler", 10, quiet=True) as tell, show_status("reading", quiet=True) as change:
        assert tell is None
        change("writing")
    assert terminal.getvalue() == ""


def test_no_progress_is_written_to_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("euler", 10) as tell, show_status("reading") as change:
        assert tell is None
        change("writing")
    assert capsys.readouterr() == ("", "")


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    tell = count_done(Lines("mid\x1bpoint", clock=lambda: now[0]))
    for second in (1.0, LOG_INTERVAL + 1, LOG_INTERVAL + 2, 2 * LOG_INTERVAL + 1):
        now[0] = second
        tell("training", int(1000 * second), 100_000)
    assert capsys.readouterr().err.splitlines() == [
        "mid\N{REPLACEMENT CHARACTER}point: training (31,000 of 100,000)",
        "mid\N{REPLACEMENT CHARACTER}point: training (61,000 of 100,000)",
    ]


def test_without_a_terminal_questions_become_lines_unless_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with question_bar("euler") as tell:
        assert isinstance(tell, Lines)
    with question_bar("euler", quiet=True) as tell:
        assert tell is None
