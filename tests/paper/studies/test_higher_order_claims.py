"""The sentences of the paper's section 5: their verdicts follow the numbers."""

from typing import Any

import pytest

from fluxforge.paper.studies import higher_order
from study_documents import judge_document

MIDPOINT = {"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}
RK4 = {"c1": 1 / 4, "c2": 1 / 3, "c3": 1 / 2, "c4": 1.0}


def _network(part: float) -> dict[str, Any]:
    return {"residual": {"network": part, "euler": 1.0, "midpoint": 0.25}}


def _rows(*c1: float) -> list[dict[str, Any]]:
    return [{"step": 2.0**-k, "constants": {"c1": value, "a1": value + 0.1}} for k, value in enumerate(c1)]


SEEDS = 10


def _rates(**reached: int) -> dict[str, Any]:
    """Ten seeds of each recipe; so many of them reach it."""
    counts = {"midpoint": 10, "found": 10, "lower": 10, "flat": 0, "twice": 10, "else": 0} | reached
    names = {
        "midpoint": {"midpoint rule": counts["midpoint"], "lower residual than Euler": counts["lower"]},
        "two-hop": {
            "midpoint rule": counts["found"],
            "lower residual than Euler": 10,
            "two-hop term without A and δ": counts["flat"],
            "two-hop term is the flux twice": counts["twice"],
            "two-hop term is something else": counts["else"],
        },
    }
    return {
        recipe: {"rates": {name: {"reached": count, "of": SEEDS} for name, count in rates.items()}}
        for recipe, rates in names.items()
    }


def _result() -> dict[str, Any]:
    """A result as the study is expected to give it."""
    midpoint = {"recovered": True, "constants": dict(MIDPOINT), "constants_uncertainty": {"c1": 1e-4}}
    law = {"factor": 0.5, "exponents": {"A_PN": 1.0, "V_P": -1.0}}
    return {
        "networks": {"midpoint": _network(0.1), "two-hop": _network(0.2), "two layers, θ = 1": _network(1.0)},
        "discovered": {"midpoint": midpoint, "two-hop": {"recovered": True, "laws": {"far": law}}},
        "direct": {
            "θ = 0.5": {"rows": _rows(0.3, 0.4), "limit": dict(MIDPOINT), "certified": {"order": 2.0}},
            "θ = 1": {"rows": _rows(0.45, 0.63, 0.78), "limit": dict.fromkeys(MIDPOINT, 1.0)},
        },
        "direct_four": {"θ = ½": {"limit": dict.fromkeys(RK4, 0.5)}, "hermite": {"limit": dict(RK4)}},
        "printed_diffusivity": {family: [[1.7, 0.0], [0.0, 1.7]] for family in ("squares", "equilateral")},
        "rates": _rates(),
    }


def _verdict(result: dict[str, Any], name: str) -> str:
    return next(claim.verdict for claim in judge_document(higher_order, result) if claim.name == f"higher-order-{name}")


def _evidence(result: dict[str, Any], name: str) -> str:
    return next(
        claim.evidence for claim in judge_document(higher_order, result) if claim.name == f"higher-order-{name}"
    )


def test_every_sentence_has_a_verdict() -> None:
    assert {
        claim.name.removeprefix("higher-order-"): claim.verdict for claim in judge_document(higher_order, _result())
    } == {
        "residual": "holds under a condition",
        "midpoint": "holds under a condition",
        "half": "holds under a condition",
        "source": "holds under a condition",
        "two-hop": "does not hold",
        "two-hop-found": "holds under a condition",
        "novel": "does not hold",
        "novel-operator": "does not hold",
        "four-layers": "holds under a condition",
    }


ON_SEEDS = {
    "residual": "lower",
    "midpoint": "midpoint",
    "two-hop-found": "found",
    "two-hop": "flat",
}


@pytest.mark.parametrize("name", [*ON_SEEDS, "novel-operator"])
def test_one_seed_is_no_verdict(name: str) -> None:
    alone = _result()
    alone["rates"] = None
    assert _verdict(alone, name) == "cannot be tested from the text"
    assert _evidence(alone, name).startswith("Judged on one seed; 5 are required (fluxforge reproduce rates).")
    few = _result()
    for recipe in few["rates"].values():
        for rate in recipe["rates"].values():
            rate |= {"reached": 4, "of": 4}
    assert _verdict(few, name) == "cannot be tested from the text"
    assert _evidence(few, name).startswith("Judged on 4 seeds")


@pytest.mark.parametrize(("name", "rate"), ON_SEEDS.items())
def test_verdicts_on_trained_networks_follow_their_rates(name: str, rate: str) -> None:
    changed = _result()
    for reached, verdict in ((10, "holds under a condition"), (5, "holds under a condition"), (4, "does not hold")):
        changed["rates"] = _rates(**{rate: reached})
        assert _verdict(changed, name) == verdict
        assert _evidence(changed, name).startswith(f"True of {reached} of 10 seeds.")


@pytest.mark.parametrize("name", ["midpoint", "two-hop-found"])
def test_what_one_seed_found_changes_no_verdict(name: str) -> None:
    changed = _result()
    for recipe in ("midpoint", "two-hop"):
        changed["discovered"][recipe] = {"recovered": False}
    assert _verdict(changed, name) == "holds under a condition"
    assert "no formula" in _evidence(changed, name)


def test_a_two_hop_correction_holds_outright_if_the_loss_as_printed_is_of_second_order() -> None:
    outright = _result()
    for order, reached, verdict in (
        (1.01, 10, "holds under a condition"),
        (2.0, 10, "holds"),
        (2.0, 9, "holds"),
        (2.0, 8, "holds under a condition"),
    ):
        outright["direct"]["θ = 1"]["certified"] = {"order": order}
        outright["rates"] = _rates(found=reached)
        assert _verdict(outright, "two-hop-found") == verdict


def test_a_scheme_is_new_if_it_is_of_second_order_and_not_the_midpoint_rule() -> None:
    changed = _result()
    assert "second-order Runge–Kutta method" in _evidence(changed, "novel")
    changed["direct"]["θ = 0.5"]["limit"]["c1"] = 0.6
    assert _verdict(changed, "novel") == "holds under a condition"
    changed["direct"]["θ = 1"] |= {"certified": {"order": 2.0}}
    assert _verdict(changed, "novel") == "holds"
    for direct in changed["direct"].values():
        direct["certified"] = {"order": 1.0}
    assert _verdict(changed, "novel") == "does not hold"


def test_an_operator_is_new_if_it_is_not_the_flux_twice() -> None:
    changed = _result()
    for other, verdict in ((4, "does not hold"), (5, "holds under a condition"), (9, "holds")):
        changed["rates"] = _rates(**{"twice": 10 - other, "else": other})
        assert _verdict(changed, "novel-operator") == verdict
        assert f"In {10 - other} of 10 seeds it is" in _evidence(changed, "novel-operator")
    # Networks that were refused have shown none.
    changed["rates"] = _rates(twice=2)
    assert _verdict(changed, "novel-operator") == "does not hold"


def test_residuals_are_judged_on_the_recipe_that_reaches_them_least() -> None:
    changed = _result()
    changed["rates"]["two-hop"]["rates"]["lower residual than Euler"]["reached"] = 3
    assert _verdict(changed, "residual") == "does not hold"
    assert "Below the midpoint rule's at θ = ½: midpoint 2.5×, two-hop 1.2×" in _evidence(_result(), "residual")


def test_forward_in_time_there_is_no_residual_to_be_lower_than() -> None:
    """At θ = 0 Euler's is round-off: a network that is above it says nothing about the sentence."""
    result = _result()
    result["networks"]["two layers, θ = 0"] = {"residual": {"network": 1e-2, "euler": 1e-16, "midpoint": 0.2}}
    assert "θ = 0" not in _evidence(result, "residual")


def test_the_constants_of_one_seed_are_told() -> None:
    assert "c1 = 0.5000 ± 1e-04" in _evidence(_result(), "midpoint")
    assert "the limit is c1 = 1.000" in _evidence(_result(), "midpoint")


def test_the_verdict_on_the_half_follows_the_constant_against_the_step() -> None:
    changed = _result()
    for rows, verdict in (
        (_rows(0.46, 0.5, 0.54), "holds"),
        (_rows(0.45, 0.7, 0.9), "holds under a condition"),
        (_rows(0.3, 0.7, 0.9), "holds under a condition"),
        (_rows(0.6, 0.7, 0.9), "does not hold"),
    ):
        changed["direct"]["θ = 1"]["rows"] = rows
        assert _verdict(changed, "half") == verdict
    assert "nearest to ½ at 1." in _evidence(_result(), "half")


def test_midpoint_holds_outright_if_the_loss_as_printed_gives_it_too() -> None:
    changed = _result()
    changed["direct"]["θ = 1"]["limit"]["c1"] = 0.501
    assert _verdict(changed, "midpoint") == "holds"
    changed["direct"]["θ = 1"]["certified"] = {"order": 1.01}
    assert "of order 1.01 in time" in _evidence(changed, "midpoint")


def test_the_verdict_on_the_printed_source_follows_the_limit() -> None:
    changed = _result()
    assert "0.55" in _evidence(changed, "source")
    changed["direct"]["θ = 0.5"]["limit"]["a1"] = 0.99
    assert _verdict(changed, "source") == "holds"
    changed["direct"]["θ = 1"]["limit"]["a1"] = 0.97
    assert _verdict(changed, "source") == "holds under a condition"
    changed["direct"]["θ = 0.5"]["limit"]["a1"] = 0.97
    assert _verdict(changed, "source") == "does not hold"


def test_the_verdict_on_the_two_hop_scheme_follows_both_diffusivities() -> None:
    changed = _result()
    changed["printed_diffusivity"]["squares"] = [[1.04, 0.0], [0.0, 1.04]]
    assert _verdict(changed, "two-hop") == "does not hold"
    assert "another equation" in _evidence(changed, "two-hop")
    changed["printed_diffusivity"]["equilateral"] = [[0.96, 0.0], [0.0, 0.96]]
    assert "another equation" not in _evidence(changed, "two-hop")
    assert "two-hop coefficient is 0.50 A_PN^1.00 V_P^-1.00" in _evidence(changed, "two-hop")
    # Networks that learned the printed term have no powers of areas and distances.
    assert _verdict(changed, "two-hop") == "does not hold"
    changed["rates"] = _rates(flat=9)
    assert _verdict(changed, "two-hop") == "holds"
    changed["printed_diffusivity"]["equilateral"] = [[2.7, 0.0], [0.0, 2.7]]
    assert _verdict(changed, "two-hop") == "holds under a condition"
    changed["discovered"]["two-hop"] = {"recovered": False}
    assert "coefficient" not in _evidence(changed, "two-hop")


def test_the_verdict_on_four_layers_follows_both_limits() -> None:
    changed = _result()
    changed["direct_four"]["θ = ½"]["limit"] = dict(RK4)
    assert _verdict(changed, "four-layers") == "holds"
    for direct in changed["direct_four"].values():
        direct["limit"] = {**RK4, "c2": 0.5}
    assert _verdict(changed, "four-layers") == "does not hold"
