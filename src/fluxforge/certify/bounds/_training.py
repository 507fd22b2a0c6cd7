"""What the proofs use of the training set: its corner cases, and the one geometry and step they have."""

from typing import NamedTuple

import numpy as np

from fluxforge.certify.bounds._errors import conditions
from fluxforge.certify.bounds._records import Hypothesis
from fluxforge.data import CORNER_CASES, Problem

NEGATED = tuple(tuple(0.0 - value for value in case) for case in CORNER_CASES[1:])
_SAME = 1e-9


class Taught(NamedTuple):
    """Δt, α, V, Δt/V and α Δt A/(V δ) of the pairs without faces; NaN where there is no such pair, or not one value."""

    dt: float
    diffusivity: float
    volume: float
    pace: float
    exchange: float


def taught(training: Problem) -> Taught:
    """The constants of the pairs with one message a cell, which the corner cases are."""
    alone = _alone(training)
    found = conditions(training)
    columns = (
        np.asarray(training.dt)[:, None],
        np.asarray(training.parameters["alpha"])[:, None],
        np.asarray(training.graph.V),
        np.asarray(found.pace),
        np.asarray(found.exchange),
    )
    return Taught(*(_only(column[alone]) for column in columns))


def _alone(training: Problem) -> np.ndarray:
    return (np.asarray(conditions(training).neighbours) == 1).all(axis=1)


def _only(values: np.ndarray) -> float:
    one = values.size > 0 and np.ptp(values) <= _SAME * np.abs(values).max()
    return float(values.flat[0]) if one else float("nan")


def has_cases(training: Problem, cases: tuple[tuple[float, ...], ...], name: str) -> Hypothesis:
    """Whether each case G(T_1, T_2, S_1, S_2) is among the graphs without faces."""
    alone = _alone(training)
    values = np.concatenate([np.asarray(training.T), np.asarray(training.S)], axis=1)
    missing = list(cases)
    if values.shape[1] == 4:
        off = np.abs(values[:, None, :] - np.array(cases)[None]).max(axis=2)
        present = ((off <= _SAME) & alone[:, None]).any(axis=0)
        missing = [case for case, there in zip(cases, present, strict=True) if not there]
    shown = ", ".join("G(" + ", ".join(f"{v:g}" for v in case) + ")" for case in missing)
    return Hypothesis(name, not missing, f"missing: {shown}" if missing else f"all {len(cases)} are there")


def unit_pair(known: Taught) -> Hypothesis:
    """A/(V δ) = 1, α = 1 and one Δt on the training pairs, so that the exchange with the neighbour is Δt."""
    holds = abs(known.exchange - known.dt) <= _SAME and abs(known.diffusivity - 1.0) <= _SAME
    evidence = f"αΔt A/(Vδ) = {known.exchange:.4g} for Δt = {known.dt:.4g}, α = {known.diffusivity:.4g}"
    return Hypothesis("training pairs", holds, evidence)
