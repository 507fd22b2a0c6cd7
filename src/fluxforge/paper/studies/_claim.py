"""A claim of the paper, and what the numbers say of it."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Verdict: TypeAlias = Literal["holds", "holds under a condition", "does not hold", "cannot be tested from the text"]


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, the verdict computed from a result, and the numbers it rests on.

    `condition` is what a verdict "holds under a condition" begins with, if that has a name.
    """

    name: str
    text: str
    verdict: Verdict
    evidence: str
    condition: str = ""

    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)
