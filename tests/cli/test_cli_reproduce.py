"""`fluxforge reproduce`: parts chosen, a page written, kept results compared with; bad words are one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Cli

from fluxforge.cli import _discover, _reproduction
from fluxforge.paper import PARTS, _claims, _run
from toy_paper import SENTENCES, Toy, parts


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> tuple[Toy, Toy]:
    first, second = Toy("first"), Toy("second", "holds under a condition")
    for module, name in ((_run, "PARTS"), (_claims, "PART_TEXTS"), (_reproduction, "PARTS")):
        monkeypatch.setattr(module, name, parts(first, second))
    monkeypatch.setattr(_claims, "SENTENCES", SENTENCES)
    monkeypatch.setattr(_discover, "PARTS", ("first", "second"))
    return first, second


def test_the_command_knows_every_part() -> None:
    assert tuple(PARTS) == _discover.PARTS


def test_all_parts_are_run_shown_and_put_on_a_page(cli: Cli, toys: Any, tmp_path: Path) -> None:
    done = cli("reproduce", "-o", tmp_path)
    assert done.code == 0, done.err
    assert "holds: 1, holds under a condition: 1, cannot be tested from the text: 1" in done.out
    assert "both count" in done.out
    assert (tmp_path / "index.html").exists()
    again = cli("reproduce", "-o", tmp_path)
    assert again.code == 0
    assert [toy.runs for toy in toys] == [1, 1]


def test_one_part_prints_its_own_document(cli: Cli, toys: Any, tmp_path: Path) -> None:
    done = cli("reproduce", "second", "-o", tmp_path, "--json")
    assert json.loads(done.out)["claims"][0]["evidence"] == "run 1"
    assert [toy.runs for toy in toys] == [0, 1]
    both = json.loads(cli("reproduce", "-o", tmp_path, "--json").out)
    assert set(both["parts"]) == {"first", "second"}
    assert len(both["claims"]) == 3


def test_kept_results_are_compared_with_and_a_changed_verdict_fails(cli: Cli, toys: Any, tmp_path: Path) -> None:
    first, _ = toys
    cli("reproduce", "-o", tmp_path / "kept")
    same = cli("reproduce", "-o", tmp_path / "fresh", "--check", tmp_path / "kept")
    assert same.code == 0
    assert "no verdict differs" in same.out
    assert "first: 0 of 6 numbers differ" in same.out
    assert "deterministic: 6" in same.out
    path = tmp_path / "kept" / "first" / "first.json"
    path.write_text(path.read_text(encoding="utf-8").replace("0.0625", "0.0625001"), encoding="utf-8")
    moved = cli("reproduce", "-o", tmp_path / "fresh", "--check", tmp_path / "kept")
    assert moved.code == 0
    assert "rows[2].error: 0.0625001 → 0.0625, deterministic: differs by 1e-07" in " ".join(moved.out.split())
    first.verdict = "does not hold"
    other = cli("reproduce", "-o", tmp_path / "fresh", "--check", tmp_path / "kept", "--again")
    assert other.code == 1
    assert "“the first counts”: holds → does not hold" in other.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("figure-9",), "there is no part 'figure-9'"),
        (("--preset", "slow"), "there is no preset 'slow'"),
        (("--check", "nowhere"), "nowhere: no such folder"),
    ],
)
def test_bad_words_are_one_line_and_nothing_is_run(cli: Cli, toys: Any, words: Any, said: str, tmp_path: Path) -> None:
    done = cli("reproduce", *words, "-o", tmp_path / "new")
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert not (tmp_path / "new").exists()
    assert [toy.runs for toy in toys] == [0, 0]


def test_a_folder_without_results_is_refused_before_anything_is_run(cli: Cli, toys: Any, tmp_path: Path) -> None:
    done = cli("reproduce", "-o", tmp_path / "new", "--check", tmp_path)
    assert done.code == 2
    assert "contains no results to compare with" in done.err
    assert [toy.runs for toy in toys] == [0, 0]
