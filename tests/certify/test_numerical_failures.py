"""Numerical failures of a measurement become lines of the certificate; faults of the program are raised."""

import json
import math
import sys
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence

from fluxforge.certify import Certificate, Verdict, _doubts, list_doubts, verify, verify_step
from fluxforge.certify._properties import Stability
from fluxforge.certify._systems import exact_solution
from fluxforge.certify.growth import measure_maximum_principle
from fluxforge.certify.modified import modified_equation
from fluxforge.certify.stability import measure_stability
from fluxforge.errors import InstabilityError, NumericalError
from fluxforge.mesh import dual, jittered, squares
from fluxforge.scheme import Scheme, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import Operator, factorise

VERIFICATION = sys.modules["fluxforge.certify._verify"]
FAULTS = [
    TypeError,
    KeyError,
    AttributeError,
    IndexError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    AssertionError,
]
FAILURES = [NumericalError, InstabilityError, ZeroDivisionError, OverflowError, np.linalg.LinAlgError]


def failing_with(kind: type[Exception]) -> Any:
    def measure(*_: object, **__: object) -> None:
        raise kind("what went wrong")

    return measure


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_of_the_program_ends_the_certificate(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VERIFICATION, "measure_linearity", failing_with(kind))
    with pytest.raises(kind, match="what went wrong"):
        verify("euler", mesh=squares(2))
    monkeypatch.setattr(_doubts, "other_equation", failing_with(kind))
    with pytest.raises(kind, match="what went wrong"):
        list_doubts([BUILT_IN["euler"]], squares(2))


def test_a_numerical_failure_becomes_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(
        f"measure_{name}" for name in ("maximum_principle", "stability", "cost", "transient_growth", "conservation")
    )
    for name, kind in zip(names, FAILURES, strict=True):
        monkeypatch.setattr(VERIFICATION, name, failing_with(kind))
    lines = [line for line in verify("euler", mesh=squares(2)).lines if line.evidence == "what went wrong"]
    assert len(lines) == len(names)
    assert {line.verdict for line in lines} == {Verdict.UNKNOWN}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_numerical_failure_is_a_note_of_a_run(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_doubts, "other_equation", failing_with(kind))
    (note,) = list_doubts([BUILT_IN["euler"]], squares(2))
    assert "is not established (what went wrong)" in note


def test_eigenvalues_that_did_not_converge_make_no_certificate_of_stability(monkeypatch: pytest.MonkeyPatch) -> None:
    def unconverged(*_: object, **__: object) -> None:
        raise ArpackNoConvergence("no convergence (%d/%d)", np.array([-1.0]), None)

    monkeypatch.setattr(sys.modules["fluxforge.stepping._limit"], "eigs", unconverged)
    with pytest.raises(NumericalError, match="were not found"):
        measure_stability(BUILT_IN["corrected"], dual(jittered(13, 0.2, seed=2)))


def test_matrices_that_cannot_be_solved_say_so() -> None:
    for entries, why in (([[1.0, 1.0], [1.0, 1.0]], "singular"), ([[math.nan, 0.0], [0.0, 1.0]], "not finite")):
        with pytest.raises(NumericalError, match=why):
            factorise(csr_array(np.array(entries)))
    broken = Operator(csr_array(np.array([[math.inf]])), csr_array((1, 1)), np.zeros(1), 0.0)
    with pytest.raises(NumericalError, match="not finite"):
        exact_solution(broken, np.ones(1), np.zeros(1), 1.0)


def test_a_step_that_is_not_finite_has_no_maximum_principle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons with NaN are false: unchecked, a NaN would violate no principle at any step."""
    broken = csr_array(np.diag([1.0, math.nan, 1.0, 1.0]))
    monkeypatch.setattr(sys.modules["fluxforge.certify.growth"], "step_matrix", lambda *_, **__: broken)
    with pytest.raises(NumericalError, match="is not finite at cell 1"):
        measure_maximum_principle(BUILT_IN["euler"], dual(squares(2)))


def test_a_step_that_gives_no_numbers_gets_a_certificate() -> None:
    certificate = verify_step(lambda graph, dt: lambda T: T * math.nan, mesh=squares(3))
    growth = [line for line in certificate.lines if "Δt_Fourier" in line.property]
    assert len(growth) == 5
    assert {line.verdict for line in growth} == {Verdict.UNKNOWN}
    assert Verdict.HOLDS not in {line.verdict for line in certificate.lines}


def build(messages: dict[str, str], output: str) -> Scheme:
    return SchemeBuilder().stage(messages, {"T_new": output}).build("mine")


def test_a_scheme_that_forgets_all_fields_has_no_modified_equation() -> None:
    with pytest.raises(NumericalError, match="does not depend on T or S"):
        modified_equation(build({}, "1 + dt"), "squares")


def stability_document(stability: Stability) -> Any:
    return Certificate(scheme="any", quick=False, stability=stability).to_document()["stability"]


def test_a_document_tells_no_limit_from_a_limit_not_known() -> None:
    bent = build({"z": "alpha*A/delta*(T_N**3 - T_P**3)"}, "T + dt/V*z")
    schemes = (BUILT_IN["euler"], BUILT_IN["crank-nicolson"], bent)
    documents = [stability_document(measure_stability(scheme, dual(squares(2)))) for scheme in schemes]
    json.dumps(documents, allow_nan=False)
    for key in ("dt_limit_kind", "real_interval_kind"):
        assert [document[key] for document in documents] == ["finite", "unlimited", "unknown"]
    assert [document["unlimited"] for document in documents] == [False, True, None]
    assert [document["dt_max_over_fourier"] is None for document in documents] == [False, True, True]
    whole = verify(bent, mesh=squares(2)).to_document()
    assert whole["stability"] == documents[2]
    assert whole["maximum_principle_tried_to"] is None


def test_steps_that_were_all_stable_when_tried_are_not_called_unlimited() -> None:
    tried = Stability(0.1, one_operator=False, dt_max=math.inf, rate=1.0)
    document = stability_document(tried)
    assert (document["bound"], document["unlimited"], document["dt_limit_kind"]) == (False, None, "unknown")
