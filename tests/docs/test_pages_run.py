"""What README and docs show is run: Python, commands, recipes and schemes, page by page, in a folder of its own."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from doc_pages import PAGES, blocks, inline_code, quoted_certificates
from doc_runs import TOO_LONG, Page, Read, check_output, parsed, takes_minutes

from fluxforge.cli import main
from fluxforge.cli._arguments import ORDER

LONG = [page for page in PAGES if any(map(takes_minutes, blocks(page)))]
QUOTED = [page for page in PAGES if quoted_certificates(page)]


@pytest.fixture
def read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Read]:
    """What was printed since it was last asked, in a new folder and at the width of a pipe."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    # As users have it: 32 bits until somebody asks for more.
    jax.config.update("jax_enable_x64", False)

    def everything() -> str:
        captured = capsys.readouterr()
        return captured.out + captured.err

    yield everything
    jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_is_so(page: Path, read: Read) -> None:
    Page(page, read, in_full=False).run()


@pytest.mark.slow
@pytest.mark.parametrize("page", LONG, ids=lambda page: page.stem)
def test_what_a_page_shows_is_so_of_long_commands_too(page: Path, read: Read) -> None:
    Page(page, read, in_full=True).run()


def test_the_commands_that_are_parsed_and_never_run_are_these_two() -> None:
    """The comment of a command decides: one that got this comment by chance would no longer be run."""
    lines = [(page.stem, line) for page in PAGES for block in blocks(page) for line in block.text.splitlines()]
    parsed_only = [(stem, shlex.split(line, comments=True)) for stem, line in lines if line.endswith(TOO_LONG)]
    assert [(stem, words[2:4], len(words)) for stem, words in parsed_only] == [
        ("gallery", ["reproduce", "gallery"], 8),
        ("skew", ["discover", "skew"], 16),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page", QUOTED, ids=lambda page: page.stem)
def test_a_certificate_begins_as_its_page_quotes_it(page: Path, read: Read) -> None:
    for command, sentence in quoted_certificates(page):
        assert main(shlex.split(command)[1:]) == 0
        check_output([sentence], read(), page.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_named_in_the_prose_exist(page: Path) -> None:
    for code in inline_code(page):
        words = code.split()
        if words[0] == "fluxforge" and len(words) > 1 and words[1].islower() and words[1][0] != "-":
            assert words[1] in ORDER, f"{page.name}: {code}"
            if not any(word.isupper() or "…" in word or "|" in word for word in words):
                parsed([*words[1:], *_missing(words)], page.name)


def _missing(words: list[str]) -> list[str]:
    """What a command cannot do without, where the prose only names it."""
    if len(words) > 2:
        return []
    needed = {"verify": ["euler"], "simulate": ["euler", "--mesh", "m.msh"], "export": ["euler", "--to", "c"]}
    return {**needed, "mesh": ["square"], "bench": ["step"]}.get(words[1], [])


def test_a_line_that_was_not_printed_is_noticed() -> None:
    check_output(["cells  12, in 3 ms", "…", "order 2.0 …"], "cells 7, in 12 µs\nx\norder 1.9 on squares\n", "here")
    with pytest.raises(AssertionError, match="the page shows 'verdict: as claimed'"):
        check_output(["verdict: as claimed"], "verdict: contradicted\n", "here")
    with pytest.raises(AssertionError, match="the page shows 'a 1'"):
        check_output(["b 2", "a 1"], "a 1\nb 2\n", "here")
