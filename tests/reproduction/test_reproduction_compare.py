"""A fresh run beside kept results: verdicts, numbers, and what is not comparable."""

import copy

import pytest

from fluxforge.reproduction import compare

KEPT = {
    "generalisation": {
        "preset": "quick",
        "claims": [{"name": "both fit", "verdict": "holds", "evidence": "median 1.0"}],
        "summary": {"median": 2.0, "exact": 0.0, "seconds": 5.0},
        "rows": [{"cells": 100, "error": 1e-3, "stable": True}, {"cells": 300, "error": 1e-15}],
        "environment": {"device": "cpu", "cores": 2},
        "took_s": 30.0,
    }
}


def changed(**own):
    fresh = copy.deepcopy(KEPT)
    fresh["generalisation"] |= own
    return fresh


def moved(fresh):
    (part,) = compare(fresh, KEPT)["parts"]
    return {each["where"]: (each["kept"], each["fresh"]) for each in part["moved"]}


def test_the_same_results_have_not_moved():
    found = compare(copy.deepcopy(KEPT), KEPT)
    assert found["verdicts"] == found["unjudged"] == []
    assert found["parts"][0]["compared"] == 6
    assert found["parts"][0]["moved"] == []


def test_time_and_hardware_are_not_results():
    fresh = changed(took_s=900.0, environment={"cores": 64}, summary={"median": 2.0, "exact": 0.0, "seconds": 700.0})
    assert moved(fresh) == {}


def test_where_a_kept_result_comes_from_is_no_number_of_it():
    kept = copy.deepcopy(KEPT)
    kept["generalisation"] |= {"seed": 0, "commit": "abc", "command": "fluxforge reproduce", "hardware": "2 cores"}
    (part,) = compare(copy.deepcopy(KEPT), kept)["parts"]
    assert (part["compared"], part["moved"]) == (6, [])
    # A seed within a result is one.
    kept["generalisation"]["rows"][0]["seed"] = 3
    assert compare(copy.deepcopy(KEPT), kept)["parts"][0]["moved"][0]["where"] == "rows[0].seed"


def test_numbers_move_by_more_than_a_tenth():
    assert moved(changed(summary={"median": 2.19, "exact": 0.0})) == {}
    assert moved(changed(summary={"median": 2.3, "exact": 0.0})) == {"summary.median": (2.0, 2.3)}
    assert moved(changed(summary={"median": -2.0, "exact": 0.0})) == {"summary.median": (2.0, -2.0)}


def test_rounding_does_not_move():
    rows = copy.deepcopy(KEPT["generalisation"]["rows"])
    rows[1]["error"] = 7e-15
    assert moved(changed(rows=rows)) == {}
    rows[0]["error"] = 2e-3
    assert moved(changed(rows=rows)) == {"rows[0].error": (1e-3, 2e-3)}


def test_what_is_gone_has_moved():
    assert moved(changed(summary={"exact": 0.0})) == {"summary.median": (2.0, None)}


def test_other_sizes_give_other_numbers_and_the_same_verdicts():
    fresh = changed(preset="paper", summary={"median": 9.0})
    (part,) = compare(fresh, KEPT)["parts"]
    assert part["compared"] == 0
    fresh["generalisation"]["claims"][0] = {"name": "both fit", "verdict": "does not hold", "evidence": ""}
    (turned,) = compare(fresh, KEPT)["verdicts"]
    assert (turned["claim"], turned["kept"], turned["fresh"]) == ("toy-fit", "holds", "does not hold")


def test_parts_that_one_side_lacks_are_named_and_change_no_verdict():
    found = compare({}, KEPT)
    assert found["only_kept"] == ["generalisation"]
    assert found["verdicts"] == found["parts"] == []
    assert found["unjudged"] == ["toy-fit"]
    assert compare(KEPT, {})["only_fresh"] == ["generalisation"]


@pytest.mark.parametrize("where", ["summary.median", "rows[0].error"])
def test_the_largest_change_comes_first(where):
    summary = {"median": 3.0, "exact": 0.0}
    rows = copy.deepcopy(KEPT["generalisation"]["rows"])
    rows[0]["error"] = 1e-3 * (1.2 if where == "summary.median" else 9.0)
    (part,) = compare(changed(summary=summary, rows=rows), KEPT)["parts"]
    assert part["moved"][0]["where"] == where
