"""Belief: every condition has to hold, and each can fail by itself."""

from typing import Any

import numpy as np
import pytest

from fluxforge.discover._judge import judge
from fluxforge.verify import Certificate, FamilyResult, Rates
from fluxforge.verify.conservation import Conservation
from fluxforge.verify.time_order import TimeStudy


def document(**changes: Any) -> dict[str, Any]:
    """A run whose formula does all that is asked, read through its stencil."""
    good: dict[str, Any] = {
        "loss": {"network": 1e-3, "formula": 1.4e-3, "rational": 1.4e-3},
        "laws": {},
        "order": 2,
        "against_step": [
            {"step": 0.5, "network": {"unexplained": 0.09}},
            {"step": 0.25, "network": {"unexplained": 0.02}},
            {"step": 0.125},
        ],
        "stencil": {
            "network": {"factor": 0.98, "exponents": {"A": 1.01, "delta": -0.99}},
            "difference": 0.03,
            "agree": True,
        },
    }
    return {**good, **changes}


def certificate(
    *, conserves: bool | None = True, order: float | None = 2.0, K: np.ndarray | None = None, family: str = "squares"
) -> Certificate:
    nothing: dict[str, Any] = dict.fromkeys(("linearity", "semidiscrete", "stability", "maximum", "cost"))
    K = np.eye(2) if K is None else K
    return Certificate(
        scheme="found",
        quick=True,
        lines=(),
        claims=(),
        conservation=None if conserves is None else conservation(conserves),
        time=None if order is None else TimeStudy(falling(order), falling(order + 1.0)),
        space={family: FamilyResult(None, None, K)},
        modified={},
        curves=(),
        **nothing,
    )


def conservation(holds: bool) -> Conservation:
    return Conservation(holds=holds, defect=0.0, cell=None, drift=0.0, antisymmetric=True)


def falling(order: float) -> Rates:
    sizes = tuple(0.5**k for k in range(5))
    return Rates(sizes, tuple(0.1 * size**order for size in sizes))


def failed(reasons: list[str]) -> list[str]:
    return [reason for reason in reasons if reason.startswith("NO: ")]


def test_a_formula_that_does_all_that_is_asked_is_believed() -> None:
    believed, reasons = judge(document(), certificate(), order=2)
    assert believed
    assert len(reasons) == 6
    assert all(reason.startswith("yes: ") for reason in reasons)
    assert "1.40e-03" in reasons[0]
    assert reasons[0].endswith("each at its shortest steps")
    assert "all but 9.0% of" in reasons[1]
    assert "0.980 A^1.01 delta^-0.99" in reasons[2]


DOUBTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "loss": ({"loss": {"network": 1e-3, "formula": 1.6e-3}}, {}, "loss is 1.60e-03, the network's own 1.00e-03"),
    "unexplained": (
        {"against_step": [{"network": {"unexplained": 0.01}}, {"network": {"unexplained": 0.11}}]},
        {},
        "the flux repeated 2 times explains all but 11.0%",
    ),
    "stencil": ({"stencil": {**document()["stencil"], "difference": 0.2, "agree": False}}, {}, "by 20.0%"),
    "conservation": ({}, {"conserves": False}, "the scheme does not conserve heat"),
    "no conservation": ({}, {"conserves": None}, "the scheme does not conserve heat"),
    "time order": ({}, {"order": 1.85}, "order in time is 1.85, 2 asked for"),
    "no time order": ({}, {"order": None}, "order in time is not established, 2 asked for"),
    "diffusivity": ({}, {"K": np.array([[1.0, 0.0], [0.0, 1.06]])}, "differs from α by 6.0%"),
    "cross diffusivity": ({}, {"K": np.array([[1.0, -0.06], [0.0, 1.0]])}, "differs from α by 6.0%"),
    "no diffusivity": ({}, {"family": "right"}, "diffusivity on squares could not be established"),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_each_condition_can_fail_by_itself(doubt: str) -> None:
    changes, about, line = DOUBTS[doubt]
    believed, reasons = judge(document(**changes), certificate(**about), order=2)
    assert not believed
    (only,) = failed(reasons)
    assert line in only
    assert len(reasons) == 6


def test_the_order_is_that_of_the_loss() -> None:
    """A first-order formula is all that a first-order loss asks for."""
    assert judge(document(), certificate(order=0.95), order=1)[0]
    assert not judge(document(), certificate(order=0.95), order=2)[0]
    assert judge(document(), certificate(order=1.9), order=2)[0]
    assert not judge(document(), certificate(order=2.0), order=4)[0]


def test_round_off_is_no_reason_for_doubt() -> None:
    assert judge(document(loss={"network": 1e-14, "formula": 9e-10}), certificate(), order=2)[0]
    assert not judge(document(loss={"network": 1e-14, "formula": 2e-9}), certificate(), order=2)[0]


def test_a_run_through_the_modules_is_not_asked_what_it_repeats() -> None:
    own = document()
    del own["laws"], own["against_step"]
    believed, reasons = judge(own, certificate())
    assert believed
    assert len(reasons) == 5
    assert not reasons[0].endswith("each at its shortest steps")


def test_a_loss_that_is_no_number_is_not_believed() -> None:
    assert not judge(document(loss={"network": 1.0, "formula": np.nan}), certificate(), order=2)[0]


def test_a_network_of_which_nothing_could_be_measured_is_not_believed() -> None:
    spoilt = [{"network": {"unexplained": np.nan}}]
    assert not judge(document(against_step=spoilt), certificate(), order=2)[0]
