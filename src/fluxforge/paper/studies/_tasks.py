"""Measurements by their words, for a process that knows nothing else."""

from collections.abc import Callable, Mapping
from typing import Any

from fluxforge.paper.studies._cases import Subject
from fluxforge.paper.studies._footprint import footprint
from fluxforge.paper.studies._measures import residuals, space_error, time_errors
from fluxforge.scheme.reference import BUILT_IN

Task = Callable[[Mapping[str, Any]], dict[str, Any]]


def grid_of(subject: Subject, words: Mapping[str, Any]) -> dict[str, Any]:
    """Residuals and errors in time of one scheme on one mesh, for every step."""
    where = {name: words[name] for name in ("cells", "seed", "fractions")}
    rows = zip(time_errors(subject, **where, end=words["end"]), residuals(subject, **where), strict=True)
    return {"rows": [one | other for one, other in rows]}


def space_of(subject: Subject, words: Mapping[str, Any]) -> dict[str, Any]:
    """The error of one scheme against the equation on one mesh."""
    return space_error(subject, **{name: words[name] for name in ("cells", "seed", "fraction", "until")})


TASKS: Mapping[str, Task] = {
    "grid": lambda words: grid_of(BUILT_IN[words["scheme"]], words),
    "space": lambda words: space_of(BUILT_IN[words["scheme"]], words),
    "memory": footprint,
}
