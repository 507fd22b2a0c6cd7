"""The kept results judge every claim of the paper, with the verdicts that the present code computes from them."""

import json
from pathlib import Path

import pytest

from fluxforge.paper import PARTS, judge_claims, read_documents
from fluxforge.run.result import to_document

RESULTS = Path(__file__).parents[2] / "results"


# An hour of trainings on two cores, whose claims are open until it is kept; and our own controls, kept as `quick`.
OPEN = tuple(name for name in ("rates", "controls") if not (RESULTS / f"{name}.json").exists())


def test_no_claim_of_the_paper_is_left_unjudged():
    documents = read_documents(RESULTS)
    assert [*documents, *OPEN] == sorted(PARTS, key=lambda name: (name in OPEN, list(PARTS).index(name)))
    unjudged = [row for row in judge_claims(documents) if row.verdict == "not run here"]
    assert all(set(row.parts) & set(OPEN) for row in unjudged)


@pytest.mark.parametrize("path", sorted([*RESULTS.glob("*.json"), *RESULTS.glob("quick/*.json")]), ids=lambda p: p.stem)
def test_a_kept_result_says_where_it_comes_from_and_what_is_judged_of_it_today(path):
    document = json.loads(path.read_text(encoding="utf-8"))
    assert path.stat().st_size < 1_000_000
    assert {"command", "hardware"} <= set(document) or path.stem == "train"
    if path.stem not in PARTS:
        return
    assert {"commit", "seed", "preset", "environment"} <= set(document)
    # Numbers are kept to six digits, so that an evidence of rounding may differ.
    judged = [(claim.name, claim.verdict) for claim in PARTS[path.stem].judge(document)]
    assert judged == [(claim["name"], claim["verdict"]) for claim in document["claims"]]


def kept_documents() -> list[Path]:
    """The kept documents of all studies."""
    paths = sorted([*RESULTS.glob("*.json"), *RESULTS.glob("quick/*.json")])
    return [path for path in paths if path.stem in PARTS]


@pytest.mark.parametrize("path", kept_documents(), ids=lambda p: p.stem)
def test_a_kept_result_is_written_as_it_was_read(path):
    """The record of a study has every field of its document, in the same order and with the same numbers."""
    document = json.loads(path.read_text(encoding="utf-8"))
    written = to_document(PARTS[path.stem].read(document))
    kept = {name: value for name, value in document.items() if name in written}
    assert json.dumps(written) == json.dumps(kept)
    outside = {"format", "format_version", "command", "commit", "hardware", "seed", "preset", "inputs", "took_s"}
    assert set(document) - set(written) - outside == {"environment", "claims"} - set(written)


@pytest.mark.parametrize("name", [name for name in PARTS if name not in OPEN])
def test_every_figure_of_a_part_is_drawn_from_its_kept_result(name):
    document = read_documents(RESULTS)[name]
    result = PARTS[name].read(document)
    for title, figure in PARTS[name].figures.items():
        assert PARTS[name].draw[title](result).axes
        assert set(figure.keys) <= set(document)
