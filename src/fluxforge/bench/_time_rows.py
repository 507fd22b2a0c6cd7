"""Rows of `fluxforge bench time`, conclusions on fixed polynomials and local coefficients, and the figure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIXED_METHODS = ("midpoint", "rk4", "rkl2", "rkc2", "optimal", "minimax", "fitted", "chebyshev")
"""Families whose step is one polynomial of the operator, chosen without knowledge of the field."""
FAMILIES = {
    "midpoint": "midpoint, substeps",
    "rk4": "RK4, substeps",
    "rkl2": "RKL2",
    "rkc2": "RKC2",
    "optimal": "longest interval, order 2",
    "minimax": "nearest polynomial 1 + z + …",
    "fitted": "constants fitted elsewhere",
    "chebyshev": "Chebyshev series",
    "krylov": "Krylov",
    "oracle": "constants, the answer known",
    "crank-nicolson": "Crank–Nicolson, AMG",
    "tr-bdf2": "TR-BDF2, AMG",
}
_LEAST_ERROR = 1e-10
# Tolerance of equal budgets, since applications come in whole numbers of stages.
_BUDGET_RATIO = 1.02


@dataclass(frozen=True)
class TimeRow:
    """One step, in `substeps` substeps, of one method on one mesh from one field.

    `error` is the mean |difference from exp(ΔtL)T| over the mean |change|, `error_volume` the same weighted by volumes.
    `applications` of the operator and `seconds` are those of the whole step, `setup_seconds` those of the preparation.
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
    """A run by one method: `steps` steps of `fourier` Fourier steps each.

    `applications` are those of the operator in all, `budget` those allowed per Fourier step. `error` is the mean
    |difference from exp(tL)T| over the mean |change|, None for a run that blew up; `seconds` are those of a step times
    the number of steps.
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


def conclude(rows: Sequence[TimeRow], runs: Sequence[RunRow]) -> tuple[str, ...]:
    """Sentences that compare local coefficients with fixed polynomials: by method, by mesh, and for runs."""
    said: list[str] = []
    for mesh in dict.fromkeys(row.mesh for row in rows):
        said += _describe_steps([row for row in rows if row.mesh == mesh])
    return (*said, *_describe_runs(runs))


def compare_fixed(row: TimeRow, rows: Sequence[TimeRow]) -> tuple[float, TimeRow] | None:
    """The error over that of the best fixed polynomial with no more applications, and the row of that polynomial.

    None if the row has no error or there is no such polynomial.
    """
    alike = [
        other
        for other in rows
        if (other.mesh, other.field, other.fourier) == (row.mesh, row.field, row.fourier)
        and other.family in FIXED_METHODS
        and other.error is not None
        and other.applications <= _BUDGET_RATIO * row.applications
    ]
    if row.error is None or not alike:
        return None
    best = min(alike, key=lambda other: other.error or 0.0)
    return row.error / max(best.error or 0.0, 1e-300), best


def _describe_steps(rows: Sequence[TimeRow]) -> Iterator[str]:
    """Sentences on the single steps on one mesh."""
    compared = [(row, comparison) for row in rows if row.family == "local" and (comparison := compare_fixed(row, rows))]
    whole = [(row, comparison) for row, comparison in compared if row.substeps == 1]
    for key in dict.fromkeys((row.fourier, row.method, row.applications) for row, _ in whole):
        alike = [each for each in whole if (each[0].fourier, each[0].method, each[0].applications) == key]
        ratios = ", ".join(f"{row.field} {ratio:.2g} ({best.method})" for row, (ratio, best) in alike)
        yield (
            f"{alike[0][0].mesh}, a step of {key[0]:g} Fourier steps with {key[2]:g} applications: the error of "
            f"{key[1]} over that of the best fixed polynomial: {ratios}"
        )
    for words, alike in (
        ("with single steps, local coefficients have a smaller error", whole),
        ("with substeps, local coefficients have a smaller error", [each for each in compared if each[0].substeps > 1]),
    ):
        if alike:
            won = sum(ratio < 1.0 for _, (ratio, _) in alike)
            yield (
                f"{alike[0][0].mesh}, {words} than every fixed polynomial with as many applications in "
                f"{won} of {len(alike)} cases"
            )


def _describe_runs(runs: Sequence[RunRow]) -> Iterator[str]:
    local = [row for row in runs if row.family == "local"]
    for key in dict.fromkeys((row.mesh, row.budget, row.method) for row in local):
        alike = [row for row in local if (row.mesh, row.budget, row.method) == key]
        first = alike[0]
        where = f"{first.mesh}, run of {first.steps:,} steps of {first.fourier:.2g} Fourier steps: {first.method}"
        if any(row.error is None for row in alike):
            yield f"{where} blew up"
            continue
        ratios = [_run_ratios(row, runs) for row in alike]
        yield (
            f"{where}, error over that of the best fixed polynomial with as many applications at steps no longer: "
            f"{', '.join(near for near, _ in ratios)}; at any step: {', '.join(best for _, best in ratios)}"
        )


def _run_ratios(row: RunRow, runs: Sequence[RunRow]) -> tuple[str, str]:
    """Texts with the error over that of the best fixed polynomial of equal work: with Δt no longer, and with any Δt."""
    alike = [
        other
        for other in runs
        if (other.mesh, other.field, other.budget) == (row.mesh, row.field, row.budget)
        and other.family in FIXED_METHODS
        and other.error is not None
    ]

    def ratio(among: Sequence[RunRow]) -> str:
        if not among:
            return f"{row.field} -"
        best = min(among, key=lambda other: other.error or 0.0)
        return f"{row.field} {(row.error or 0.0) / max(best.error or 0.0, 1e-300):.2g} ({best.method})"

    return ratio([other for other in alike if other.fourier <= _BUDGET_RATIO * row.fourier]), ratio(alike)


def work_precision_figure(rows: Sequence[TimeRow], *, fourier: float, against: str = "applications") -> "Figure":
    """Error of one step of `fourier` Fourier steps against `applications` or `seconds`, one panel per mesh and field.

    Steps with local coefficients have stars, one line per formula or network.
    """
    from fluxforge.report._page import panels

    rows = [row for row in rows if row.fourier == fourier and row.error is not None]
    keys = list(dict.fromkeys((row.mesh, row.field) for row in rows))
    figure, axes = panels(len(keys), columns=2)
    for panel, key in zip(axes, keys, strict=True):
        _draw(panel, [row for row in rows if (row.mesh, row.field) == key], against)
        panel.set(
            xlabel="operator applications" if against == "applications" else "seconds",
            ylabel="error of one step / its change",
            title=f"{key[0]} mesh, {key[1]}, {fourier:g} Fourier steps",
        )
        panel.set_ylim(bottom=_LEAST_ERROR)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _draw(panel: "Axes", rows: Sequence[TimeRow], against: str) -> None:
    from matplotlib import colormaps

    colours = colormaps["tab20"].colors  # type: ignore[attr-defined]
    for k, (family, words) in enumerate(FAMILIES.items()):
        if points := [(getattr(row, against), row.error) for row in rows if row.family == family]:
            points.sort()
            panel.loglog(*zip(*points, strict=True), color=colours[k], marker="o", ms=3, lw=0.9, label=words)
    local = [row for row in rows if row.family == "local"]
    shades = colormaps["Dark2"].colors  # type: ignore[attr-defined]
    for k, name in enumerate(dict.fromkeys(row.method for row in local)):
        points = [(getattr(row, against), row.error) for row in local if row.method == name]
        points.sort()
        colour = shades[k % len(shades)]
        panel.loglog(*zip(*points, strict=True), color=colour, marker="*", ms=10, lw=1.4, label=name)
