"""Evidence: lines with a verdict, and observed orders from errors at successive refinements."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
from numpy.linalg import LinAlgError

from fluxforge.errors import InputError, InstabilityError, NumericalError

# Exceptions that a scheme can cause in a measurement: refused input, division by zero and overflow, a singular matrix.
# Any other exception is a fault of the program and ends the certificate instead of becoming a line of it.
NUMERICAL_FAILURES = (InputError, InstabilityError, NumericalError, ArithmeticError, LinAlgError)


class Verdict(StrEnum):
    """The verdict of a line: the property holds, fails, was measured, could not be established, or was left out."""

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


def verdict_of(holds: bool) -> Verdict:
    """The verdict of a yes-or-no question."""
    return Verdict.HOLDS if holds else Verdict.FAILS


def unknown_line(name: str, reason: str) -> Line:
    """A line for what could not be established, with the reason."""
    return Line(name, Verdict.UNKNOWN, reason, "not attempted")


@dataclass(frozen=True)
class ClaimCheck:
    """A claim, the measured value, and whether the claim holds; None if that is not established.

    `asked` is False if the user left the measurement out; such a claim does not affect the verdict. `reason` says why a
    claim was left out or is not established.
    """

    property: str
    claimed: Any
    measured: Any
    holds: bool | None
    asked: bool = True
    reason: str = ""

    def words(self) -> str:
        """Claim and measurement in words; numbers have four digits, or all digits if these four do not differ."""
        if self.asked and self.holds is not None:
            claimed, measured = _describe_value(self.claimed), _describe_value(self.measured)
            if claimed == measured and not self.holds:
                claimed, measured = str(self.claimed), str(self.measured)
            return f"claimed {claimed}, measured {measured}"
        state = "not established" if self.asked else "left out"
        return f"claimed {_describe_value(self.claimed)}, {state}" + (f": {self.reason}" if self.reason else "")


def _describe_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


T = TypeVar("T")
# progress(question, number, total) is called before each measurement.
Progress = Callable[[str, int, int], None]

NOT_LINEAR = "the scheme is not linear, so it has no matrix"


class Recorder:
    """Runs measurements, called questions, one after the other and collects their lines.

    A measurement that fails numerically becomes a line with the reason, which is also stored in `reasons` under the
    name of the question; any other exception is a fault of the program and is not caught. `linear` says whether the
    scheme has a matrix, `questions` how many questions are expected.
    """

    def __init__(self, *, linear: bool, questions: int, progress: Progress | None) -> None:
        self.linear = linear
        self.lines: list[Line] = []
        self.reasons: dict[str, str] = {}
        self._progress = progress
        self._questions = questions
        self._asked = 0

    def expect_more(self, questions: int) -> None:
        """Raise the number of questions that are expected."""
        self._questions += questions

    def announce(self, question: str) -> None:
        """Count a question and report it to the caller's `progress`."""
        self._asked += 1
        if self._progress is not None:
            self._progress(question, self._asked, max(self._questions, self._asked))

    def ask(
        self, name: str, measure: Callable[[], T], line: Callable[..., Line], *about: Any, always: bool = False
    ) -> T | None:
        """Return the result of `measure()` and add the line `line(result, *about)`.

        If it fails numerically, None is returned, and the line has the reason. A scheme that is not linear is measured
        only if `always` is set; otherwise its line says that it is not linear.
        """
        self.announce(name)
        if not (self.linear or always):
            self.add_unknown(name, NOT_LINEAR)
            return None
        result = self.attempt(name, measure)
        if result is not None:
            self.lines.append(line(result, *about))
        return result

    def attempt(self, name: str, measure: Callable[[], T]) -> T | None:
        """Return the result of `measure()`; if it fails numerically, return None and add a line with the reason."""
        try:
            with np.errstate(all="ignore"):
                return measure()
        except NUMERICAL_FAILURES as error:
            self.add_unknown(name, " ".join(str(error).split()) or type(error).__name__)
            return None

    def add_unknown(self, name: str, reason: str) -> None:
        """Add a line that says why a property is not established."""
        self.reasons[name] = reason
        self.lines.append(unknown_line(name, reason))
