"""What the rows of `fluxforge bench time` say about fixed polynomials and local coefficients, in sentences."""

from collections.abc import Iterator, Sequence

from fluxforge.bench._time_methods import FIXED
from fluxforge.bench._time_rows import RunRow, TimeRow

# Applications are whole numbers of stages: budgets agree to this.
_EQUAL = 1.02


def conclude(rows: Sequence[TimeRow], runs: Sequence[RunRow]) -> tuple[str, ...]:
    """A sentence per formula or network, mesh and step; one per mesh on single steps and on substeps; then the runs."""
    said: list[str] = []
    for mesh in dict.fromkeys(row.mesh for row in rows):
        said += _about_steps([row for row in rows if row.mesh == mesh])
    return (*said, *_about_runs(runs))


def compare_fixed(row: TimeRow, rows: Sequence[TimeRow]) -> tuple[float, TimeRow] | None:
    """The error over that of the best fixed polynomial with no more applications, and that polynomial's row."""
    alike = [
        other
        for other in rows
        if (other.mesh, other.field, other.fourier) == (row.mesh, row.field, row.fourier)
        and other.family in FIXED
        and other.error is not None
        and other.applications <= _EQUAL * row.applications
    ]
    if row.error is None or not alike:
        return None
    best = min(alike, key=lambda other: other.error or 0.0)
    return row.error / max(best.error or 0.0, 1e-300), best


def _about_steps(rows: Sequence[TimeRow]) -> Iterator[str]:
    """Of one mesh."""
    compared = [(row, found) for row in rows if row.family == "local" and (found := compare_fixed(row, rows))]
    whole = [(row, found) for row, found in compared if row.substeps == 1]
    for key in dict.fromkeys((row.fourier, row.method, row.applications) for row, _ in whole):
        alike = [each for each in whole if (each[0].fourier, each[0].method, each[0].applications) == key]
        ratios = ", ".join(f"{row.field} {ratio:.2g} ({best.method})" for row, (ratio, best) in alike)
        yield (
            f"{alike[0][0].mesh}, a step of {key[0]:g} Fourier steps with {key[2]:g} applications: the error of "
            f"{key[1]} over that of the best fixed polynomial: {ratios}"
        )
    for words, alike in (
        ("taken at once, local coefficients err", whole),
        ("taken in substeps, local coefficients err", [each for each in compared if each[0].substeps > 1]),
    ):
        if alike:
            won = sum(ratio < 1.0 for _, (ratio, _) in alike)
            yield (
                f"{alike[0][0].mesh}, steps {words} less than every fixed polynomial with as many applications in "
                f"{won} of {len(alike)} cases"
            )


def _about_runs(runs: Sequence[RunRow]) -> Iterator[str]:
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
            f"{where} errs, relative to the best fixed polynomial with as many applications at steps no longer: "
            f"{', '.join(near for near, _ in ratios)}; at any step: {', '.join(best for _, best in ratios)}"
        )


def _run_ratios(row: RunRow, runs: Sequence[RunRow]) -> tuple[str, str]:
    """The error over that of the best fixed polynomial of equal work: among steps no longer, and among all."""
    alike = [
        other
        for other in runs
        if (other.mesh, other.field, other.budget) == (row.mesh, row.field, row.budget)
        and other.family in FIXED
        and other.error is not None
    ]

    def ratio(among: Sequence[RunRow]) -> str:
        if not among:
            return f"{row.field} -"
        best = min(among, key=lambda other: other.error or 0.0)
        return f"{row.field} {(row.error or 0.0) / max(best.error or 0.0, 1e-300):.2g} ({best.method})"

    return ratio([other for other in alike if other.fourier <= _EQUAL * row.fourier]), ratio(alike)
