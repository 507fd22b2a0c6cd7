"""What `fluxforge simulate --steady` runs: solve for the steady state, write and print it."""

from dataclasses import asdict

from fluxforge.cli._output import duration, number, show, show_json, show_pairs
from fluxforge.cli._progress import doing
from fluxforge.cli._simulation import Problem, Request
from fluxforge.errors import InputError
from fluxforge.stepping import SOLVERS_OF_STEADY_STATES, steady


def run_steady(request: Request, problem: Problem, *, diffusivity: float | None, solver: str) -> None:
    """Solve for the steady state of one scheme; raises InputError for several, and for a solver it does not take."""
    if len(request.schemes) > 1 or request.gif:
        raise InputError("--steady takes one scheme and writes one field: leave out --compare and --gif")
    if solver not in SOLVERS_OF_STEADY_STATES:
        raise InputError(f"--steady takes --solver {', '.join(SOLVERS_OF_STEADY_STATES)}; got {solver}")
    with doing("solving for the steady state", quiet=request.as_json):
        found = steady(
            request.schemes[0],
            problem.mesh,
            equation=problem.equation,
            parameters=problem.parameters,
            diffusivity=diffusivity,
            source=problem.source,
            boundary=problem.boundary,
            solver=solver,
        )
        files = [] if request.folder is None else found.save(request.folder, overwrite=request.overwrite)
    summary = found.summary()
    if request.as_json:
        show_json({**asdict(summary), "files": files})
        return
    show_pairs(
        [
            ("scheme", summary.scheme),
            ("cells", f"{summary.cells:,}"),
            (found.words.unknown, f"{number(summary.min)} to {number(summary.max)}, mean {number(summary.mean)}"),
            (found.words.total, number(summary.heat)),
            ("residual", number(summary.residual)),
            ("time", duration(summary.seconds)),
        ]
    )
    if files:
        show(f"wrote {request.folder}: {', '.join(path.name for path in files)}")
