"""What is said of a theorem: its value, which of its hypotheses hold, and where it was tried hardest."""

from dataclasses import dataclass

from fluxforge.data import Problem
from fluxforge.gnn import Network


@dataclass(frozen=True)
class Hypothesis:
    """A condition of a theorem, whether it holds, and the number that says so."""

    name: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Bound:
    """A theorem's bound on the error in any cell, `value`, for a training error of `eps`, and its hypotheses."""

    name: str
    value: float
    eps: float
    hypotheses: tuple[Hypothesis, ...]

    @property
    def applies(self) -> bool:
        """Whether every hypothesis holds."""
        return all(hypothesis.holds for hypothesis in self.hypotheses)


@dataclass(frozen=True)
class Place:
    """A cell of one of the problems posed on a mesh."""

    mesh: str
    problem: int
    cell: int

    def __str__(self) -> str:
        return f"cell {self.cell} of problem {self.problem} on {self.mesh}"


@dataclass(frozen=True)
class BoundCheck:
    """The largest error met, `ratio` times the bound, and where.

    `corrected` is the bound that needs no hypothesis on biases, volumes, α or the Fourier condition, where there is
    one; `counterexample` is the problem on which the theorem's own bound was exceeded.
    """

    bound: Bound
    worst_error: float
    ratio: float
    where: Place
    corrected: float | None
    counterexample: Problem | None

    @property
    def holds(self) -> bool:
        """Whether no error exceeded the bound."""
        return self.ratio <= 1.0

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The theorem's, judged on this network and these problems."""
        return self.bound.hypotheses


@dataclass(frozen=True)
class Counterexample:
    """A network that a printed statement speaks of, and which does not do what the statement says.

    `training` maps each reading of the training set to the largest error on it; `check` is what was met elsewhere,
    with ε the error on the reading named `fits`.
    """

    name: str
    claim: str
    network: Network
    nonzeros: int
    training: dict[str, float]
    fits: str
    check: BoundCheck
