"""The controls: what is cached and what is run, what counts as fooled, and a claim that follows the rows."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from fluxforge import recipe
from fluxforge.distil import Reading
from fluxforge.paper import PARTS
from fluxforge.paper.studies import controls
from fluxforge.paper.studies._decoys import ANY_VERDICT, DECOYS, FAKES, LAWS, NOT_RECOVERED, RECOVERED, Decoy
from fluxforge.pipeline import Judged
from fluxforge.pipeline._formula import NetworkConstants
from study_documents import judge_document, read_partial, run_document

CONFIG = controls.Config(decoys=("heat", "first-order-5%", "euler"))


def bare(kind: type, **fields: Any) -> Any:
    """A record with some of its fields; the study reads no others."""
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The recipes that were judged, by a judge that takes no time: heat is refused, all else is an approximation."""
    made: list[str] = []

    def judge(_: Any, spec: recipe.Recipe, *__: Any) -> Judged:
        made.append(spec.name)
        verdict = "refused" if spec.training.steps == 3000 else "approximation"
        reading = bare(Reading, step=0.1, explained=0.9)
        constants = bare(NetworkConstants, readings=(reading,), limit={}, uncertainty={})
        return bare(Judged, verdict=verdict, reasons=("yes: a", "NO: b"), formula=None, constants=constants)

    class Trained:
        def member(self, _: int) -> None:
            return None

    monkeypatch.setattr(controls, "TrainedMember", lambda network: network)
    monkeypatch.setattr(controls, "distil_network", lambda *_: None)
    monkeypatch.setattr(controls, "judge_formula", judge)
    monkeypatch.setattr(controls, "train", lambda *_, **__: Trained())
    monkeypatch.setattr(controls, "source", lambda _: None)
    return made


def test_every_decoy_is_run_once_and_collected_afterwards(asked: list[str], tmp_path: Path) -> None:
    result = run_document(controls, CONFIG, tmp_path)
    assert asked == ["first-order", "first-order", "midpoint"]
    assert [row["name"] for row in result["rows"]] == list(CONFIG.decoys)
    assert [row["kind"] for row in result["rows"]] == ["law", "network", "network"]
    assert {row["reason"] for row in result["rows"]} == {"NO: b"}
    again = run_document(controls, CONFIG, tmp_path)
    assert len(asked) == 3
    assert again == result
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_a_decoy_that_has_become_another_one_is_run_again(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_document(controls, CONFIG, tmp_path)
    other = Decoy("heat", "something else", RECOVERED)
    monkeypatch.setattr(controls, "DECOYS", {**DECOYS, "heat": other})
    assert run_document(controls, CONFIG, tmp_path)["rows"][0]["what"] == "something else"
    assert len(asked) == 4


def test_a_true_law_that_is_not_recovered_is_missed_and_the_claim_says_so(asked: list[str], tmp_path: Path) -> None:
    result = run_document(controls, CONFIG, tmp_path)
    assert result["counts"] == {"ok": 2, "FOOLED": 0, "missed": 1}
    (claim,) = result["claims"]
    assert claim["verdict"] == "holds under a condition"
    assert claim["condition"] == "with heat not recovered"


@pytest.mark.parametrize(
    ("allowed", "verdict", "own", "outcome"),
    [
        (RECOVERED, "recovered", True, "ok"),
        (RECOVERED, "recovered", False, "FOOLED"),
        (RECOVERED, "approximation", False, "missed"),
        (NOT_RECOVERED, "recovered", True, "FOOLED"),
        (NOT_RECOVERED, "refused", False, "ok"),
        (ANY_VERDICT, "recovered", False, "FOOLED"),
        (ANY_VERDICT, "recovered", True, "ok"),
        (ANY_VERDICT, "approximation", False, "ok"),
    ],
)
def test_what_counts_as_fooled(allowed: frozenset[str], verdict: str, own: bool, outcome: str) -> None:
    assert controls.judge_outcome(Decoy("x", "y", allowed), verdict, own) == outcome


def test_one_decoy_that_is_believed_decides_the_claim(asked: list[str], tmp_path: Path) -> None:
    result = run_document(controls, CONFIG, tmp_path)
    for outcome, verdict in (("FOOLED", "does not hold"), ("ok", "holds")):
        changed = copy.deepcopy(result)
        for row in changed["rows"]:
            row["outcome"] = "ok"
        changed["rows"][1]["outcome"] = outcome
        (claim,) = judge_document(controls, changed)
        assert claim.verdict == verdict
        assert ("wrongly recovered: first-order-5%" in claim.evidence) == (outcome == "FOOLED")


def test_the_table_has_a_row_per_decoy(asked: list[str], tmp_path: Path) -> None:
    table = PARTS["controls"].table(read_partial(run_document(controls, CONFIG, tmp_path), controls.Result))
    assert len(table.rows) == 3
    assert table.rows[0][:4] == ("heat", "α A/δ (T_N − T_P): nothing is wrong", "refused", "90.00%")
    assert table.rows[0][4:7] == ("—", "recovered", "missed")
    assert table.rows[1][5:7] == ("approximation or refused", "ok")


def test_names_are_unique_and_every_recipe_is_sound() -> None:
    assert len(DECOYS) == len(LAWS) + len(FAKES)
    for preset in ("quick", "paper"):
        for decoy in DECOYS.values():
            recipe.check(controls.make_recipe(decoy, controls.Config(preset)))
