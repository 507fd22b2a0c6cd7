"""Sentences on extrapolation, judged by both kinds of networks: verdicts follow the kept numbers."""

import copy
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fluxforge.errors import DocumentError
from fluxforge.paper import SENTENCES, _claims, format_csv, judge_claims, read_carried, write_reproduction
from toy_paper import SENTENCES as TOYS

RESULTS = Path(__file__).parents[2] / "results"
EXTRAPOLATES, ACCURATE = "abstract-extrapolates", "intro-accurate"
CONVERGENCE = json.loads((RESULTS / "convergence.json").read_text(encoding="utf-8"))
CARRY = json.loads((RESULTS / "carry.json").read_text(encoding="utf-8"))
Document = dict[str, Any]


def judge_kinds(folder: Path, carry: Document | None = CARRY, convergence: Document | None = CONVERGENCE) -> Any:
    """By sentence, the verdicts of the paper's networks and of that in the form of a flux, read from a folder."""
    if carry is not None:
        (folder / "carry.json").write_text(json.dumps(carry), encoding="utf-8")
    documents = {} if convergence is None else {"convergence": convergence}
    claims = judge_claims(documents, [each for each in SENTENCES if each.kinds], read_carried(folder))
    return {claim.claim: tuple(each.verdict for each in claim.kinds) for claim in claims}


def test_the_kept_networks_of_the_paper_contradict_them_and_that_in_the_form_of_a_flux_holds_them(tmp_path: Path):
    verdicts = judge_kinds(tmp_path)
    assert set(verdicts) == {EXTRAPOLATES, ACCURATE, "conclusion-sparsity"}
    assert set(verdicts.values()) == {("contradicted", "held")}


def test_the_evidence_has_the_numbers_of_the_files():
    claims = judge_claims({"convergence": CONVERGENCE}, carried=read_carried(RESULTS))
    paper, flux = next(claim for claim in claims if claim.claim == ACCURATE).kinds
    rows = [row for row in CARRY["convergence"]["rows"] if row["fourier"] <= 0.5]
    worst = max(row["network-carry"] / row["euler"] for row in rows)
    assert f"to {worst:.2g}, above 1 in 0 of {len(rows)}" in flux.evidence
    own = CARRY["runs"]["carry, two stages"]["carry"]
    assert f"to {max(row['network'] / row['midpoint'] for row in own):.2g}, above 1 in 0 of 8" in flux.evidence
    for name in ("network-midpoint", "network-two-hop"):
        above = sum(row[name] >= row["euler"] for row in rows)
        assert f"above 1 in {above} of {len(rows)}" in paper.evidence.partition(name)[2].partition(";")[0]


def first_place(document: Document) -> Document:
    row: Document = next(row for row in document["convergence"]["rows"] if row["fourier"] <= 0.5)
    return row


def two_stages(document: Document) -> Document:
    row: Document = document["runs"]["carry, two stages"]["carry"][-1]
    return row


SPOILED: dict[str, tuple[Callable[[Document], None], str]] = {
    "1,000 steps blow up": (lambda own: two_stages(own).update(blew_up=True), EXTRAPOLATES),
    "a run blows up": (lambda own: first_place(own)["error"].update({"network-carry": None}), EXTRAPOLATES),
    "a run errs as Euler's": (
        lambda own: first_place(own)["error"].update({"network-carry": first_place(own)["error"]["euler"]}),
        EXTRAPOLATES,
    ),
    "a residual as Euler's": (
        lambda own: first_place(own).update({"network-carry": first_place(own)["euler"]}),
        ACCURATE,
    ),
    "no finite residual": (lambda own: first_place(own).update({"network-carry": None}), ACCURATE),
    "a step errs more than the midpoint rule's": (
        lambda own: two_stages(own).update(network=1.01 * two_stages(own)["midpoint"]),
        ACCURATE,
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_number_changes_the_verdict_of_its_sentence_alone(tmp_path: Path, name: str):
    spoil, sentence = SPOILED[name]
    document = copy.deepcopy(CARRY)
    spoil(document)
    verdicts = judge_kinds(tmp_path, document)
    assert verdicts[sentence] == ("contradicted", "contradicted")
    assert verdicts[ACCURATE if sentence == EXTRAPOLATES else EXTRAPOLATES] == ("contradicted", "held")


def test_networks_of_the_paper_that_did_better_would_hold_them(tmp_path: Path):
    better = copy.deepcopy(CONVERGENCE)
    euler = {(row["wanted"], row["fourier"]): row for row in better["rows"] if row["scheme"] == "euler"}
    for row in better["rows"]:
        if row["scheme"] in ("network-midpoint", "network-two-hop"):
            peer = euler[row["wanted"], row["fourier"]]
            row["error"] = None if peer["error"] is None else 0.5 * peer["error"]
            row["residual_half"] = 0.5 * peer["residual_half"]
    assert judge_kinds(tmp_path, CARRY, better)[EXTRAPOLATES] == ("held", "held")
    assert judge_kinds(tmp_path, CARRY, better)[ACCURATE] == ("held", "held")


def test_a_network_of_the_other_kind_in_the_study_itself_is_judged_there(tmp_path: Path):
    """As a reproduction has it with a run `carry` in its folder: the places are in the document of the study."""
    study = copy.deepcopy(CONVERGENCE)
    twins = [dict(row) for row in study["rows"] if row["scheme"] == "network-midpoint"]
    study["rows"] += [row | {"scheme": "network-carry"} for row in twins]
    only_table = copy.deepcopy(CARRY)
    only_table["convergence"]["rows"] = []
    assert set(judge_kinds(tmp_path, only_table, study).values()) == {("contradicted", "contradicted")}


def test_without_its_file_a_kind_of_network_is_not_judged(tmp_path: Path):
    assert set(judge_kinds(tmp_path, None).values()) == {("contradicted", "not run here")}
    assert set(judge_kinds(tmp_path, CARRY, None).values()) == {("not run here", "held")}
    without = copy.deepcopy(CARRY)
    del without["runs"]["carry, two stages"]
    assert set(judge_kinds(tmp_path, without).values()) == {("contradicted", "not run here")}


def test_a_kept_file_that_is_something_else_is_named(tmp_path: Path):
    with pytest.raises(DocumentError, match=r"carry\.json"):
        judge_kinds(tmp_path, {name: each for name, each in CARRY.items() if name != "runs"})


@pytest.mark.usefixtures("toys")
def test_page_and_table_say_what_each_kind_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_claims, "SENTENCES", (replace(TOYS[2], kinds="extrapolates"),))
    (tmp_path / "carry.json").write_text(json.dumps(CARRY), encoding="utf-8")
    claims = write_reproduction(tmp_path).claims
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "With networks in the form of a flux <b>held</b>: error of runs over Euler&#39;s on" in page
    (row,) = csv.DictReader(io.StringIO(format_csv(claims)))
    assert row["kinds"].startswith("with the paper's networks not run here: needs fluxforge reproduce")
    assert "; with networks in the form of a flux held: error of runs" in row["kinds"]
