"""The page and the table of a recipe with arms."""

import pytest

from fluxforge.cli._discovery import show_arms
from fluxforge.report._arms_page import compare_summaries
from fluxforge.run.result import ArmSummary, Quartiles


def arm(median: float | None) -> ArmSummary:
    """An arm with this median of the one-step error; None is what a document has for a number that is not finite."""
    known, error = Quartiles(q1=1.0, median=2.0, q3=3.0), Quartiles(q1=0.5, median=median, q3=None)
    return ArmSummary(train_mae=known, ood_mse=error, rollout_mse=error, nonzeros=known, stuck=0)


SUMMARY = {"diverging": arm(None), "dense": arm(0.9), "sparse": arm(0.6)}


def test_an_arm_whose_error_is_not_finite_is_the_last() -> None:
    assert "(MSE): sparse 0.6, dense 0.9, diverging —." in compare_summaries(SUMMARY)


def test_a_table_has_a_dash_for_a_number_that_is_not_finite(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    show_arms({"this run": SUMMARY})
    shown = " ".join(capsys.readouterr().out.split())
    assert "diverging 2 [1, 3] - [0.5, -] - [0.5, -] 2 [1, 3] 0" in shown
    assert "sparse 2 [1, 3] 0.6 [0.5, -]" in shown
