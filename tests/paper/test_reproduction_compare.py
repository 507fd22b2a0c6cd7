"""A fresh run beside kept results: verdicts, numbers by their kind, and what is not comparable."""

import copy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxforge.paper import PARTS, Kind, compare, read_documents, round_document
from fluxforge.paper._numbers import RULES, find_numbers, find_rule

RESULTS = Path(__file__).parents[2] / "results"
SEEDS = [1e-4, 2e-4, 3e-4, 4e-4, 9e-4]
KEPT = {
    "generalisation": {
        "preset": "quick",
        "seeds": 5,
        "claims": [{"name": "both fit", "verdict": "holds", "evidence": "median 1.0"}],
        "summary": {"default": {"sparse": {"ood_mse": {"q1": 2e-4, "median": 3e-4, "q3": 4e-4}, "stuck": 0}}},
        "sparse": {"ood_mse": SEEDS, "last_layer": [0.123456789, -0.5], "failed": [False] * 5},
        "parameters": 0.123456789012,
        "recipe": {"exact": 0.0, "round_off": 3e-16},
        "seconds": {"default": {"train": 5.0}},
        "environment": {"device": "cpu", "cores": 2},
        "took_s": 30.0,
    }
}


def set_value(path: str, value: Any, base: dict[str, Any] = KEPT) -> dict[str, Any]:
    """A copy of the documents with another value at a place."""
    fresh = copy.deepcopy(base)
    at: Any = fresh
    *way, last = path.split("/")
    for name in way:
        at = at[int(name)] if isinstance(at, list) else at[name]
    at[int(last) if isinstance(at, list) else last] = value
    return fresh


def find_moved(fresh: dict[str, Any], kept: dict[str, Any] = KEPT) -> dict[str, tuple[str, float, float | None]]:
    (part,) = compare(fresh, kept).parts
    return {each.where: (each.kind, each.kept, each.fresh) for each in part.moved}


def test_the_same_results_have_not_moved_and_are_counted_by_kind() -> None:
    comparison = compare(copy.deepcopy(KEPT), KEPT)
    assert comparison.verdicts == comparison.unjudged == ()
    (part,) = comparison.parts
    assert part.moved == ()
    assert part.counts == {
        Kind.EXACT: 4,
        Kind.MEDIAN: 2,
        Kind.RATE: 1,
        Kind.SPREAD: 2,
        Kind.SEED: 5 + 2,
        Kind.MACHINE: 3,
    }
    assert part.compared == 7


def test_time_and_hardware_are_not_results() -> None:
    fresh = set_value("generalisation/took_s", 900.0)
    fresh = set_value("generalisation/seconds/default/train", 700.0, fresh)
    assert find_moved(set_value("generalisation/environment/cores", 64, fresh)) == {}


def test_records_are_compared_with_those_of_the_same_scheme_whatever_others_there_are() -> None:
    rows = [{"scheme": "euler", "cells": n, "error": 1.0 / n} for n in (10, 20)]
    network = {"scheme": "network-midpoint", "cells": 10, "error": 0.3}
    with_network = find_numbers("convergence", {"rows": [network, rows[0], network, rows[1]]})
    alone = find_numbers("convergence", {"rows": rows})
    assert {place: alone[place].value for place in alone if place.endswith("error")} == {
        "rows[euler 0].error": 0.1,
        "rows[euler 1].error": 0.05,
    }
    assert alone.items() <= with_network.items()
    assert {with_network[place].rule.kind for place in with_network.keys() - alone.keys()} == {Kind.SEED}


def test_where_a_kept_result_comes_from_is_no_number_of_it() -> None:
    kept = copy.deepcopy(KEPT)
    kept["generalisation"] |= {"seed": 0, "commit": "abc", "command": "fluxforge reproduce", "hardware": "2 cores"}
    assert find_moved(copy.deepcopy(KEPT), kept) == {}


def test_deterministic_numbers_move_by_a_part_in_a_billion() -> None:
    value = KEPT["generalisation"]["parameters"]
    assert find_moved(set_value("generalisation/parameters", value * (1 + 5e-10))) == {}
    fresh = value * (1 + 1e-6)
    assert find_moved(set_value("generalisation/parameters", fresh)) == {
        "parameters": ("deterministic", value, fresh),
    }
    assert list(find_moved(set_value("generalisation/parameters", -value))) == ["parameters"]


def test_zero_up_to_round_off_does_not_move() -> None:
    """Errors of 3e-16 and 5e-16 are both round-off; 1e-11 is not."""
    assert find_moved(set_value("generalisation/recipe/round_off", 5e-16)) == {}
    assert find_moved(set_value("generalisation/recipe/exact", -7e-15)) == {}
    assert list(find_moved(set_value("generalisation/recipe/exact", 1e-11))) == ["recipe.exact"]


def test_medians_of_seeds_move_by_more_than_the_seeds_scatter() -> None:
    place = "generalisation/summary/default/sparse/ood_mse/median"
    assert find_moved(set_value(place, 3e-4 + 1.9e-4)) == {}
    assert find_moved(set_value(place, 3e-4 + 3 * 2e-4)) == {
        "summary.default.sparse.ood_mse.median": ("median over trained seeds", 3e-4, pytest.approx(9e-4))
    }


def test_a_list_of_seeds_is_compared_by_its_median_and_no_value_of_it_alone() -> None:
    assert find_moved(set_value("generalisation/sparse/ood_mse", [1e-4, 2e-4, 3e-4, 4e-4, 7.0])) == {}
    assert find_moved(set_value("generalisation/sparse/ood_mse", SEEDS[::-1])) == {}
    scattered = (np.quantile(SEEDS, 0.75) - np.quantile(SEEDS, 0.25)) * 3
    assert list(find_moved(set_value("generalisation/sparse/ood_mse", [each + scattered for each in SEEDS]))) == [
        "sparse.ood_mse[median]"
    ]


def test_a_single_weight_is_not_compared() -> None:
    assert find_moved(set_value("generalisation/sparse/last_layer", [9.0, 9.0])) == {}


def test_fitted_numbers_move_by_more_than_their_uncertainties() -> None:
    row = {"step": 0.5, "constants": {"c1": 0.25, "a1": 0.123456789012}, "error": {"c1": 1e-4}, "loss": 0.123456789012}
    own = {"higher-order": {"preset": "quick", "claims": [], "direct": {"θ = 1": {"rows": [row]}}}}
    place = "higher-order/direct/θ = 1/rows/0/constants/"
    # Both have that uncertainty; one without any may differ by what a linear programme is solved to.
    assert find_moved(set_value(place + "c1", 0.25019, own), own) == {}
    assert list(find_moved(set_value(place + "c1", 0.25021, own), own)) == ["direct.θ = 1.rows[0].constants.c1"]
    assert find_moved(set_value(place + "a1", 0.1234568, own), own) == {}
    assert list(find_moved(set_value(place + "a1", 0.1234578, own), own)) == ["direct.θ = 1.rows[0].constants.a1"]


@pytest.mark.parametrize(("stuck", "gone"), [(1, []), (3, []), (5, ["summary.default.sparse.stuck"])])
def test_a_rate_moves_if_one_rate_would_hardly_give_both_counts(stuck: int, gone: list[str]) -> None:
    assert list(find_moved(set_value("generalisation/summary/default/sparse/stuck", stuck))) == gone


def test_numbers_that_a_run_lacks_count_as_moved() -> None:
    fresh = copy.deepcopy(KEPT)
    del fresh["generalisation"]["parameters"]
    assert find_moved(fresh) == {"parameters": ("deterministic", 0.123456789012, None)}


def test_the_largest_excess_over_its_tolerance_is_listed_first() -> None:
    fresh = set_value("generalisation/parameters", 0.2)
    fresh = set_value("generalisation/sparse/ood_mse", [1.0] * 5, fresh)
    # 6e8 times what it may, and 5e3 times.
    assert list(find_moved(fresh)) == ["parameters", "sparse.ood_mse[median]"]
    fresh = set_value("generalisation/parameters", 0.1234567895, fresh)
    assert list(find_moved(fresh)) == ["sparse.ood_mse[median]", "parameters"]


def test_results_kept_with_six_digits_are_compared_to_half_a_unit_of_the_sixth() -> None:
    kept = set_value("generalisation/parameters", 0.123457)
    # A run writes all digits: only what says where it comes from has lost some.
    assert list(find_moved(copy.deepcopy(KEPT), kept)) == ["parameters"]
    kept["generalisation"]["hardware"] = "2 cores"
    assert find_moved(copy.deepcopy(KEPT), kept) == {}
    (part,) = compare(KEPT, kept).parts
    assert part.digits == 6
    assert list(find_moved(set_value("generalisation/parameters", 0.1234581), kept)) == ["parameters"]
    # One that says to keep more digits is taken by its word.
    kept["generalisation"]["digits"] = 12
    assert list(find_moved(copy.deepcopy(KEPT), kept)) == ["parameters"]


def test_results_are_kept_in_full_where_they_are_deterministic_and_with_six_digits_elsewhere() -> None:
    third = 1.0 / 3.0
    full = set_value("generalisation/parameters", third)
    full = set_value("generalisation/sparse/ood_mse/0", third, full)
    kept = round_document("generalisation", full["generalisation"]) | {"hardware": "2 cores"}
    assert (kept["parameters"], kept["sparse"]["ood_mse"][0]) == (third, 0.333333)
    (part,) = compare(full, {"generalisation": kept}).parts
    assert (part.digits, part.moved) == (None, ())
    fresh = set_value("generalisation/parameters", third * (1 + 1e-6), full)
    assert list(find_moved(fresh, {"generalisation": kept})) == ["parameters"]


def test_other_sizes_give_other_numbers_and_the_same_verdicts() -> None:
    fresh = set_value("generalisation/preset", "paper")
    fresh = set_value("generalisation/parameters", 9.0, fresh)
    (part,) = compare(fresh, KEPT).parts
    assert (part.same_preset, part.compared, part.moved) == (False, 0, ())
    fresh["generalisation"]["claims"][0] = {"name": "both fit", "verdict": "does not hold", "evidence": ""}
    (turned,) = compare(fresh, KEPT).verdicts
    assert (turned.claim, turned.kept, turned.fresh) == ("toy-fit", "holds", "does not hold")


def test_parts_that_one_side_lacks_are_named_and_change_no_verdict() -> None:
    comparison = compare({}, KEPT)
    assert comparison.only_kept == ("generalisation",)
    assert comparison.verdicts == comparison.parts == ()
    assert comparison.unjudged == ("toy-fit",)
    assert compare(KEPT, {}).only_fresh == ("generalisation",)


def without_rates(name: str, kept: dict[str, Any]) -> dict[str, Any]:
    """The kept document of a part as a run without `rates` beside it would leave it."""
    document = {**copy.deepcopy(kept[name]), "rates": None}
    return {name: {**document, "claims": [asdict(claim) for claim in PARTS[name].judge(document)]}}


@pytest.mark.parametrize("name", ["symbolic", "higher-order"])
def test_a_part_run_without_rates_is_judged_with_the_kept_ones(name: str) -> None:
    kept = read_documents(RESULTS / "quick")
    fresh = without_rates(name, kept)
    assert fresh[name]["claims"] != kept[name]["claims"]
    comparison = compare(fresh, kept)
    assert comparison.verdicts == ()
    assert comparison.kept_rates == (name,)
    assert compare(kept, fresh).kept_rates == ()


def test_another_limit_changes_verdicts_with_the_kept_rates_too() -> None:
    kept = read_documents(RESULTS / "quick")
    fresh = without_rates("symbolic", kept)
    fresh["symbolic"]["against_step"]["θ = 1"]["limit"]["c1"] = 2.0
    assert {row.fresh for row in compare(fresh, kept).verdicts} == {"does not hold"}


def test_every_part_has_a_table_and_every_rule_a_number_or_a_reason() -> None:
    assert set(RULES) - {"common"} == set(PARTS)
    for name, rules in RULES.items():
        assert all(rule.kind is not Kind.RATE or rule.of for rule in rules), name
        assert all(rule.kind is not Kind.FITTED or rule.uncertainty for rule in rules), name


@pytest.mark.parametrize(
    ("part", "place", "kind"),
    [
        ("convergence", "rows/euler/error", Kind.EXACT),
        ("convergence", "rows/network-midpoint/error", Kind.SEED),
        ("convergence", "rows/euler/seconds_per_step", Kind.MACHINE),
        ("theorems", "linear/weights/0/flux", Kind.SEED),
        ("theorems", "deep/near the lemma's network/ratios/0", Kind.EXACT),
        ("theorems", "deep/trained/ratios", Kind.MEDIAN),
        ("theorems", "counterexamples/late/ratio", Kind.EXACT),
        ("higher-order", "networks/midpoint/residual/euler", Kind.EXACT),
        ("higher-order", "networks/midpoint/residual/network", Kind.SEED),
        ("higher-order", "discovered/midpoint/constants/c1", Kind.SEED),
        ("higher-order", "direct/θ = 1/limit/c1", Kind.FITTED),
        ("higher-order", "direct/θ = 1/rows/0/constants/c1", Kind.FITTED),
        ("higher-order", "direct/θ = 1/rows/0/error/c1", Kind.SPREAD),
        ("symbolic", "against_step/θ = 1/rows/0/network/c1", Kind.SEED),
        ("symbolic", "recovery/operon/recovered", Kind.RATE),
        ("rates", "recipes/two-hop/rows/0/constants/c1", Kind.SEED),
        ("rates", "recipes/two-hop/rate/reached", Kind.RATE),
        ("rates", "recipes/two-hop/medians/explained/median", Kind.MEDIAN),
        ("controls", "rows/heat/limit/c1", Kind.SEED),
        ("controls", "counts/FOOLED", Kind.RATE),
        ("memory", "bytes_per_cell/euler/stepping", Kind.MACHINE),
        ("memory", "bytes_per_cell/euler/counted", Kind.EXACT),
    ],
)
def test_numbers_are_what_their_place_says(part: str, place: str, kind: Kind) -> None:
    assert find_rule(part, tuple(place.split("/"))).kind is kind


def test_the_rules_of_all_parts_exempt_times_and_machines_only() -> None:
    assert {rule.kind for rule in RULES["common"]} == {Kind.MACHINE}
    # No part has this name: only a rule of all parts could exempt the number.
    assert find_rule("", ("rows", "euler", "error")).kind is Kind.EXACT


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    return read_documents(RESULTS) | read_documents(RESULTS / "quick")


def test_kept_results_beside_themselves_have_not_moved(kept: dict[str, Any]) -> None:
    comparison = compare(copy.deepcopy(kept), kept)
    assert comparison.verdicts == ()
    assert all(
        part.compared > 100 and part.moved == () for part in comparison.parts if part.part not in ("rates", "controls")
    )


@pytest.mark.parametrize("name", [name for name in PARTS if name not in ("rates", "controls")])
def test_every_deterministic_number_of_a_kept_result_is_caught_if_it_moves(kept: dict[str, Any], name: str) -> None:
    """A relative change of 1e-4 is more than the rounding to six digits."""
    fresh = {name: _scale(kept[name], 1.0 + 1e-4)}
    (part,) = compare(fresh, {name: kept[name]}).parts
    wanted = {
        each.where
        for each in find_numbers(name, kept[name]).values()
        if each.rule.kind is Kind.EXACT and abs(each.value) > 1e-7 and each.rounded
    }
    caught = {each.where for each in part.moved}
    assert len(wanted) > 10
    assert wanted <= caught


def _scale(value: Any, factor: float) -> Any:
    if isinstance(value, dict):
        return {key: _scale(each, factor) for key, each in value.items()}
    if isinstance(value, list):
        return [_scale(each, factor) for each in value]
    return value * factor if isinstance(value, float) else value


def test_medians_of_a_kept_result_are_caught_beyond_three_times_their_spread(kept: dict[str, Any]) -> None:
    own = {"generalisation": kept["generalisation"]}
    medians = [each for each in find_numbers("generalisation", own["generalisation"]).values() if each.quartiles]
    assert len(medians) > 100
    arm = own["generalisation"]["summary"]["default"]["dense"]["ood_mse"]
    place = "generalisation/summary/default/dense/ood_mse/median"
    assert find_moved(set_value(place, arm["median"] + 0.9 * (arm["q3"] - arm["q1"]), own), own) == {}
    assert len(find_moved(set_value(place, arm["median"] + 3 * (arm["q3"] - arm["q1"]), own), own)) == 1


def test_a_weight_and_a_seed_of_a_kept_result_are_not_compared(kept: dict[str, Any]) -> None:
    own = {"generalisation": kept["generalisation"], "theorems": kept["theorems"], "higher-order": kept["higher-order"]}
    fresh = set_value("generalisation/sparse/last_layer/7", 9.0, own)
    fresh = set_value("generalisation/dense/ood_mse/3", 9.0, fresh)
    fresh = set_value("theorems/linear/weights/2/flux", 9.0, fresh)
    fresh = set_value("higher-order/discovered/midpoint/laws/far/factor", 9.0, fresh)
    assert [part.moved for part in compare(fresh, own).parts] == [(), (), ()]
