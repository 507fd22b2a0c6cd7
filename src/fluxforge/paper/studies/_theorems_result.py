"""The result of the study of the theorems."""

from dataclasses import dataclass

from msgspec import Struct

from fluxforge.certify.bounds._errors import Hypothesis


class LemmaRow(Struct, frozen=True):
    """The lemma's network of so many layers: its non-zeros, those printed, and its largest error on the meshes."""

    layers: int
    depth: int
    nonzeros: int
    printed: int
    worst_error: float


class Smaller(Struct, frozen=True):
    """A network with fewer non-zeros than printed: its largest error on the training set and on the meshes."""

    nonzeros: int
    printed_minimum: int
    training_error: float
    worst_error: float


class SimpleWeights(Struct, frozen=True):
    """(W₁, W₂w, W₃, Δt/V W₂b + b_u) of an exact linear network, by least squares over the training set."""

    solution: list[float]
    rank: int
    smallest_singular_value: float


class LeastL1(Struct, frozen=True):
    """The least |W₂| + |w| with W₂w = 1, and all minimisers (W₂, w)."""

    least: float
    minimisers: list[list[float]]


class Neighbours(Struct, frozen=True):
    """The most messages that arrive in a cell, in the training set and on the meshes."""

    training: int
    meshes: int


@dataclass(frozen=True)
class BoundTest:
    """A bound for a training error ε, the worst error met, `ratio` times the bound, and the theorem's hypotheses."""

    eps: float
    bound: float
    worst_error: float
    ratio: float
    where: str
    corrected_bound: float | None
    hypotheses: list[Hypothesis]


@dataclass(frozen=True)
class Counterexample:
    """A network that breaks a printed claim, and its errors on readings of the training set."""

    name: str
    claim: str
    nonzeros: int
    fits: str
    training_error: dict[str, float]


# Structs cannot have two bases with fields; of a dataclass the fields of the last base come first.
@dataclass(frozen=True)
class CounterexampleRow(BoundTest, Counterexample):
    """A counterexample with the bound that it exceeds."""


class BoundGroup(Struct, frozen=True):
    """A bound tried on several networks: ratios of error to bound, hypotheses that fail, violations, the worst."""

    networks: int
    ratios: list[float]
    eps: list[float]
    hypotheses_failing: dict[str, int]
    violations: int
    violations_with_all_hypotheses: int
    worst: BoundTest


class Weights(Struct, frozen=True):
    """The weights of a trained linear network."""

    temperature: float
    source: float
    flux: float
    message: float
    message_bias: float
    bias: float


class LinearGroup(BoundGroup, frozen=True):
    """The first bound on trained linear networks, with their weights."""

    weights: list[Weights]


class FourierRow(Struct, frozen=True):
    """The largest stable step over Fourier's: with held walls in its sum (`ratio`), and as printed (`ratio_cells`)."""

    mesh: str
    cells: int
    fourier: float
    limit: float
    ratio: float
    family: str
    ratio_cells: float


class Result(Struct, frozen=True):
    """The result of the study."""

    experiment: str
    dt: float
    lemma: list[LemmaRow]
    minimality: dict[str, Smaller]
    simple_weights: SimpleWeights
    least_l1: LeastL1
    neighbours: Neighbours
    largest_change: float
    counterexamples: list[CounterexampleRow]
    linear: LinearGroup
    deep: dict[str, BoundGroup]
    fourier: list[FourierRow]
    meshes: int
