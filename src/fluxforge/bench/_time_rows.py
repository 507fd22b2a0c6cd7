"""Rows of `fluxforge bench time`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeRow:
    """One step, taken in `substeps`, of one method on one mesh from one field.

    `error` is the mean |difference to exp(ΔtL)T| over the mean |change|, `error_volume` the same weighted by volumes;
    `applications` of the operator and `seconds` are those of the whole step, `setup_seconds` of what is done once.
    """

    mesh: str
    cells: int
    field: str
    fourier: float
    family: str
    method: str
    stages: int
    substeps: int
    applications: float
    error: float | None
    error_volume: float | None
    seconds: float
    setup_seconds: float


@dataclass(frozen=True)
class RunRow:
    """A run by one method: `steps` of `fourier` Fourier steps each, `applications` in all, `budget` per Fourier step.

    `error` is the mean |difference to exp(tL)T| over the mean |change|, None for a run that blew up; `seconds` those of
    a step times the number of steps.
    """

    mesh: str
    cells: int
    field: str
    budget: float
    family: str
    method: str
    steps: int
    fourier: float
    applications: float
    error: float | None
    seconds: float
