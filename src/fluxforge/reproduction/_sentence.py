"""A claim of the paper, and who judges it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """A claim of the paper in its own words, shortened; `judged` names the checks that its verdict is computed from.

    All of them have to hold, or with `either` one of them: then the others are its condition. A sentence that no check
    judges says in `why` what is missing to test it.
    """

    name: str
    section: str
    text: str
    judged: tuple[tuple[str, str], ...] = ()
    why: str = ""
    either: bool = False
