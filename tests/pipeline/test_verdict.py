"""Verdicts: every condition can fail by itself, and none of them is the certificate."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed

from fluxforge import recipe
from fluxforge.distil import Reading
from fluxforge.pipeline._formula import Judgement, is_expected, judge, law_condition

GOOD = Reading(
    step=0.5,
    own={"a": 0.49, "c": 1.01},
    own_uncertainty={"a": 0.02, "c": 0.02},
    hidden={"a": 0.02, "c": 0.005},
    least={"a": 0.5, "c": 1.0},
    least_uncertainty={"a": 0.001, "c": 0.001},
    explained=0.98,
    explained_by_least=0.97,
    loss=1e-3,
    exact=False,
)
EXACT = law_condition(1e-16, exact=True, data_error=0.0)


def judged(*readings: Reading, threshold: float = 0.97) -> Judgement:
    return judge(readings, threshold=threshold, law=EXACT)


def failed(judgement: Judgement) -> list[str]:
    return [reason for reason in judgement.reasons if reason.startswith("NO: ")]


def steps(**changes: object) -> list[Reading]:
    """Five Δt, one of which is changed."""
    readings = [replace(GOOD, step=0.5 / 2**k) for k in range(5)]
    readings[1] = replace(readings[1], **changes)  # type: ignore[arg-type]
    return readings


def test_a_formula_that_is_what_the_network_learned_is_recovered() -> None:
    judgement = judged(*steps())
    assert judgement.verdict == "recovered"
    assert not failed(judgement)
    assert len(judgement.reasons) == 5
    assert judgement.reasons[0].startswith("yes: with constants fitted at each Δt, the formula leaves at most 2.0% of")


DOUBTS = {
    "unexplained at one step": (
        {"explained": 0.96},
        "leaves at most 4.0% of the network's step unexplained (at Δt = 0.25",
    ),
    "another constant at one step": ({"own": {"a": 0.44, "c": 1.0}}, "a at Δt = 0.25: 0.44 ± 0.02 in the network, 0.5"),
    "unexplained by least loss": ({"explained_by_least": 0.93}, "leaves at most 7.0% unexplained (at Δt = 0.25"),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_each_condition_can_fail_by_itself_and_leaves_an_approximation(doubt: str) -> None:
    changes, line = DOUBTS[doubt]
    judgement = judged(*steps(**changes))
    assert judgement.verdict == "approximation"
    (only,) = failed(judgement)
    assert line in only


def test_the_law_of_the_data_has_to_be_met_to_their_own_error() -> None:
    for law, text in (
        (
            law_condition(2e-4, exact=False, data_error=0.0),
            "2.00e-04, not round-off: the law of the data is a different one",
        ),
        (
            law_condition(1.01e-2, exact=False, data_error=1e-2),
            "0.0101; that of the law itself on the same data is 0.01",
        ),
    ):
        judgement = judge(steps(), threshold=0.97, law=law)
        assert judgement.verdict == "approximation"
        assert text in failed(judgement)[0]
    assert (
        judge(steps(), threshold=0.97, law=law_condition(0.99e-2, exact=False, data_error=1e-2)).verdict == "recovered"
    )
    assert judge(steps(), threshold=0.97, law=None).verdict == "recovered"


def test_a_network_that_is_the_formula_exactly_needs_the_constants_exactly() -> None:
    """Nothing is unexplained, so that nothing excuses a difference: 1 + z + 0.8 z² is no midpoint rule."""
    nothing = dict.fromkeys("ac", 1e-12)
    own = {"own": {"a": 0.5, "c": 1.001}, "own_uncertainty": nothing, "hidden": nothing, "least_uncertainty": nothing}
    judgement = judged(*steps(explained=1.0, explained_by_least=0.999, **own))
    assert judgement.verdict == "approximation"
    assert "c at Δt = 0.25: 1.001" in failed(judgement)[0]


def test_what_is_unexplained_excuses_a_tenth_of_a_constant_at_most() -> None:
    wide = {"hidden": {"a": 9.0, "c": 9.0}, "own_uncertainty": {"a": 1e-3, "c": 1e-3}}
    assert judged(*steps(own={"a": 0.54, "c": 1.09}, **wide)).verdict == "recovered"
    assert judged(*steps(own={"a": 0.57, "c": 1.0}, **wide)).verdict == "approximation"


def test_a_constant_that_the_network_does_not_determine_is_not_recovered() -> None:
    loose = [replace(each, own_uncertainty={"a": 0.2, "c": 0.02}) for each in steps()]
    judgement = judged(*loose)
    assert judgement.verdict == "approximation"
    assert failed(judgement) == ["NO: the network does not determine a: ± 0.2 at best"]
    # Two steps at which it does are enough: a term in Δt² is not seen at the shortest.
    assert judged(*loose[:3], *steps()[3:]).verdict == "recovered"
    # What neither the network nor the loss determines is a gauge, and is held.
    endless = {"a": float("inf"), "c": 0.02}
    gauge = [replace(each, own_uncertainty=endless, least_uncertainty=endless) for each in steps()]
    assert judged(*gauge).verdict == "recovered"


def test_what_explains_less_than_half_is_refused() -> None:
    assert judged(*steps(explained=0.49)).verdict == "refused"
    assert judged(*steps(explained=float("nan"))).verdict != "recovered"
    assert judged(*steps(), threshold=0.99).verdict == "approximation"


def test_a_run_is_as_expected_by_its_verdict_its_order_and_its_scheme() -> None:
    plain = changed(recipe.load("first-order"), order=None)
    open_question = changed(plain, expect="approximation")
    second = changed(plain, order=2)
    assert is_expected(plain, "recovered", None, "euler")
    assert not is_expected(plain, "approximation", 1.0, None)
    assert is_expected(open_question, "approximation", None, None)
    assert is_expected(open_question, "recovered", None, "euler")
    assert not is_expected(open_question, "refused", None, None)
    assert is_expected(second, "recovered", 1.95, "midpoint")
    assert not is_expected(second, "recovered", 1.85, "midpoint")
    assert not is_expected(second, "recovered", None, "midpoint")


def test_a_recovery_from_exact_answers_that_is_no_scheme_of_its_equation_is_not_as_expected() -> None:
    plain = changed(recipe.load("first-order"), order=None)
    assert not is_expected(plain, "recovered", 1.0, None)
    for data in ({"law": "A*(T_N - T_P)"}, {"noise": 0.1}):
        assert is_expected(changed(plain, data=changed(plain.data, **data)), "recovered", 1.0, None)
    assert is_expected(recipe.load("first-order-pinn"), "recovered", 1.0, None)
