"""The record of a verification in progress: a line per question, and the reason where there is no answer."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from fluxforge.certify._evidence import NUMERICAL_FAILURES, Line, unknown_line

T = TypeVar("T")
# Called with the question that is measured next, its number, and how many there are.
Progress = Callable[[str, int, int], None]

NOT_LINEAR = "the scheme is not linear in T, so it has no matrix to ask"


class Recorder:
    """Runs measurements one after the other and collects their lines.

    A measurement that fails numerically becomes a line that says why, and its reason is kept under the name of the
    question; any other exception is a fault of the program and is not caught. `linear` says whether the scheme has a
    matrix, `questions` how many questions are expected.
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

    def ask(self, name: str, measure: Callable[[], T], line: Callable[[T], Line], *, always: bool = False) -> T | None:
        """Return what `measure` gives and add its line; None if it fails.

        A scheme that is not linear is measured only if `always` is set; otherwise its line says that it is not linear.
        """
        self.announce(name)
        if not (self.linear or always):
            self.add_unknown(name, NOT_LINEAR)
            return None
        result = self.attempt(name, measure)
        if result is not None:
            self.lines.append(line(result))
        return result

    def attempt(self, name: str, measure: Callable[[], T]) -> T | None:
        """Return what `measure` gives, without a line; None, and a line with the reason, if it fails numerically."""
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
