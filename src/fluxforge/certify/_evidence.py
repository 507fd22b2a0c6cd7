"""A line of a certificate: what was asked, what was found, and how."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from numpy.linalg import LinAlgError

from fluxforge.errors import InputError, InstabilityError, NumericalError

# What a scheme can do to a measurement: our own refusals, division by zero and overflow, a matrix without solution.
# Anything else is a fault of the program, and ends the certificate instead of becoming a line of it.
NUMERICAL_FAILURES = (InputError, InstabilityError, NumericalError, ArithmeticError, LinAlgError)


class Verdict(StrEnum):
    """What a line says: the property holds, does not, was only measured, could not be, or was not asked for."""

    HOLDS = "holds"
    FAILS = "fails"
    MEASURED = "measured"
    UNKNOWN = "not established"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Line:
    """A property, its verdict, the evidence in words with numbers, and the method."""

    property: str
    verdict: Verdict
    evidence: str
    method: str
    data: dict[str, Any] = field(default_factory=dict)


def judged(holds: bool) -> Verdict:
    """The verdict of a yes-or-no question."""
    return Verdict.HOLDS if holds else Verdict.FAILS


def unknown(name: str, reason: str, method: str = "") -> Line:
    """A line for what could not be established, with the reason."""
    return Line(name, Verdict.UNKNOWN, reason, method or "not attempted")
