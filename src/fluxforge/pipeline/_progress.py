"""How a discovery says what it is doing."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from fluxforge.train import Tell

# Told what is being done, how much of it is done, and of how much.
Progress: TypeAlias = Callable[[str, int, int], None]


def training_progress(tell: Progress) -> Tell:
    """Training's steps and loss terms as one line."""

    def told(step: int, steps: int, terms: Mapping[str, float]) -> None:
        shown = ", ".join(f"{name} {value:.2e}" for name, value in terms.items())
        tell(f"training ({shown})", step, steps)

    return told


def silent(what: str, done: int, total: int) -> None:
    """Say nothing."""
