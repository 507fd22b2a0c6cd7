"""The table of the whole paper: verdicts follow the parts' own, and every sentence is judged by a check that exists."""

import csv
import io

import pytest
from msgspec.structs import replace

from fluxforge.paper import PARTS, VERDICTS, count_verdicts, format_csv, judge_claims
from fluxforge.paper import SENTENCES as PAPER
from toy_paper import SENTENCES


def documents(first="holds", second="holds under a condition"):
    verdicts = {"first": first, "second": second}
    return {
        name: {"claims": [{"name": f"{name} counts", "verdict": verdict, "evidence": f"{name}: {verdict}"}]}
        for name, verdict in verdicts.items()
        if verdict is not None
    }


def verdict(name, **verdicts):
    return next(row for row in judge_claims(documents(**verdicts), SENTENCES) if row.claim == name).verdict


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("holds", "holds", "holds"),
        ("holds", "holds under a condition", "holds under a condition"),
        ("holds under a condition", "does not hold", "does not hold"),
        ("does not hold", "holds", "does not hold"),
        ("holds", "cannot be tested from the text", "cannot be tested from the text"),
        ("cannot be tested from the text", "does not hold", "does not hold"),
        ("holds", None, "not run here"),
        (None, "holds", "not run here"),
    ],
)
def test_a_sentence_holds_as_far_as_the_weakest_of_what_it_says(first, second, both):
    assert verdict("both", first=first, second=second) == both
    assert verdict("one", first=first, second=second) == (first or "not run here")
    assert verdict("neither", first=first, second=second) == "cannot be tested from the text"


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ("holds", "does not hold", "holds under a condition"),
        ("does not hold", "does not hold", "does not hold"),
        ("holds", "holds", "holds"),
        ("holds", None, "not run here"),
    ],
)
def test_of_alternatives_that_differ_each_is_the_others_condition(first, second, verdict):
    (row,) = judge_claims(documents(first, second), [replace(SENTENCES[1], either=True)])
    assert row.verdict == verdict


@pytest.mark.usefixtures("toys")
def test_a_row_says_where_its_numbers_are():
    row = judge_claims(documents(), SENTENCES)[1]
    assert row.commands == ["fluxforge reproduce first", "fluxforge reproduce second"]
    assert row.data == ["first/first.json", "second/second.json"]
    assert row.figures == ["first/first-figure", "second/second-figure"]
    assert "first counts, holds: first: holds — second counts, holds under a condition" in row.evidence


@pytest.mark.usefixtures("toys")
def test_a_verdict_begins_with_the_conditions_of_its_checks():
    parts = documents("holds under a condition", "holds under a condition")
    parts["first"]["claims"][0]["condition"] = "with other formulas than printed"
    rows = {row.claim: row for row in judge_claims(parts, SENTENCES)}
    assert rows["one"].condition == rows["both"].condition == "with other formulas than printed"
    parts["first"]["claims"][0]["verdict"] = "holds"
    assert judge_claims(parts, SENTENCES)[0].condition == ""


@pytest.mark.usefixtures("toys")
def test_an_older_result_that_does_not_judge_a_sentence_is_told():
    parts = documents()
    parts["first"]["claims"] = []
    row = judge_claims(parts, SENTENCES)[0]
    assert row.verdict == "not run here"
    assert "fluxforge reproduce first --again" in row.evidence


@pytest.mark.usefixtures("toys")
def test_rows_are_counted_and_fit_into_a_spreadsheet():
    rows = judge_claims(documents(), SENTENCES)
    assert count_verdicts(rows) == {
        "holds": 1,
        "holds under a condition": 1,
        "does not hold": 0,
        "cannot be tested from the text": 1,
        "not run here": 0,
    }
    read = list(csv.DictReader(io.StringIO(format_csv(rows))))
    assert [row["verdict"] for row in read] == [row.verdict for row in rows]
    assert read[1]["data"] == "first/first.json; second/second.json"


def test_every_sentence_of_the_paper_has_a_judge_or_a_reason():
    assert len({sentence.name for sentence in PAPER}) == len(PAPER) > 40
    for sentence in PAPER:
        assert bool(sentence.judged) != bool(sentence.why), sentence.name
        assert {part for part, _ in sentence.judged} <= set(PARTS)


def test_misprints_and_claims_of_novelty_are_in_the_table():
    texts = {sentence.name: sentence.text for sentence in PAPER}
    assert "cannot have a non-zero [sic] error" in texts["lemma-minimality"]
    assert "a total of 3+(m−1) non-zero parameters" in texts["lemma-update-count"]
    assert "maximum number of neighbors in D_train" in texts["definition-neighbours"]
    assert "a new, higher-order finite volume scheme" in texts["conclusion-new"]
    assert "a novel discrete operator" in texts["novel-operator"]
    assert "a novel, higher-order numerical scheme" in texts["intro-novel"]


def test_without_results_no_claim_has_a_verdict():
    rows = judge_claims({})
    assert {row.verdict for row in rows} == {"not run here", "cannot be tested from the text"}
    assert all(row.verdict in VERDICTS for row in rows)
