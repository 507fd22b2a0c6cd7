"""Run `fluxforge simulate` and `fluxforge rerun`: read the problem, step, write and print the results."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fluxforge.certify._doubts import list_doubts
from fluxforge.cli._arguments import Output, Times
from fluxforge.cli._output import duration, number, progress_bar, show, show_json, show_pairs, show_status, show_table
from fluxforge.cli._problem import read_settings
from fluxforge.errors import InputError, InstabilityError
from fluxforge.mesh._conditions import Conditions, read_conditions
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._read import read
from fluxforge.pde._equation import Equation
from fluxforge.scheme._document import check_equation, find
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._field import read_field
from fluxforge.stepping._folder import prepare_folder
from fluxforge.stepping._march import name_reference_step
from fluxforge.stepping._problem import Problem as SavedProblem
from fluxforge.stepping._problem import read_final, read_problem
from fluxforge.stepping._run import compare, continue_problem, run_problem
from fluxforge.stepping._simulation import Comparison, Simulation, write_comparison, write_run
from fluxforge.stepping._steady import SOLVERS_OF_STEADY_STATES, steady
from fluxforge.stepping._trained import TrainedNetwork


def prepare(names: Sequence[str], output: Output) -> None:
    """Prepare the output folder before anything is computed; raises InputError if it contains an earlier run."""
    if output.folder is not None:
        prepare_folder(output.folder, [_find_method(name).name for name in names], overwrite=output.overwrite)


@dataclass(frozen=True)
class Problem:
    """A mesh with initial field, source, boundary conditions and parameters."""

    mesh: Mesh
    initial: str | np.ndarray
    source: str | np.ndarray
    boundary: Conditions
    equation: str | Equation | None
    parameters: Mapping[str, str | np.ndarray]

    @staticmethod
    def read(
        file: Path,
        *,
        initial: str,
        source: str,
        boundary: Sequence[str],
        equation: str | None,
        settings: Sequence[str],
    ) -> "Problem":
        """Read the mesh, and the fields and parameters that are given as files."""
        mesh = read(file)
        conditions = read_conditions(boundary, "--boundary")
        chosen, parameters = read_settings(settings, equation, mesh)
        first, second = (_read_value(text, len(mesh.cells)) for text in (initial, source))
        return Problem(mesh, first, second, conditions, chosen, parameters)


def _read_value(text: str, cells: int) -> str | np.ndarray:
    return read_field(text[1:], cells) if text.startswith("@") else text


def run(names: Sequence[str], output: Output, problem: Problem, times: Times, **options: Any) -> None:
    """Run schemes, write the results, print them compared with the first; InstabilityError at the end for a blow-up.

    `options` are further arguments of `fluxforge.simulate`.
    """
    schemes = [_find_method(name, problem.equation) for name in names]
    if options["solver"] != "auto" and not any(scheme.implicit for scheme in schemes):
        raise InputError(f"--solver is for implicit schemes, and {names[0]} is explicit: leave it out")
    # The library leaves the choice of the 64-bit mode to its caller.
    jax.config.update("jax_enable_x64", True)
    what = schemes[0].name if len(schemes) == 1 else f"{len(schemes)} schemes"
    total = None if times.end_time is not None else (times.steps or 50) * len(schemes)
    quiet = output.as_json
    # These warnings are printed as notes.
    with progress_bar(what, total, quiet=quiet) as tell, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        comparison = compare(
            schemes,
            problem.mesh,
            initial=problem.initial,
            source=problem.source,
            boundary=problem.boundary,
            parameters=problem.parameters,
            throw=False,
            progress=tell,
            **vars(times),
            **options,
        )
    with show_status("writing the fields", quiet=quiet):
        runs = comparison.simulations
        files = _write(comparison if len(runs) > 1 else runs[0], output)
    with show_status("checking the schemes", quiet=quiet):
        doubts = [note for done in runs for note in done.notes]
        doubts += list_doubts([each for each in schemes if isinstance(each, Scheme)], problem.mesh, problem.parameters)
    if quiet:
        show_json({**_document(comparison, files), "notes": doubts})
    else:
        _show_results(comparison, problem, files)
        for note in doubts:
            show(f"note: {note}")
    for done in runs:
        _raise_if_unstable(done)


def _find_method(name: str, equation: str | Equation | None = None) -> Scheme | TrainedNetwork:
    """A scheme by name or file; for a run folder its network, or its scheme if the network is not a step.

    Raises InputError for a run without formula whose network is not a step, and for a run of another equation.
    """
    if not (Path(name) / "run.json").is_file():
        return find(name, equation)
    # Imported here, since it imports all of training, which few simulations need.
    from fluxforge.pipeline._run import load_run

    run = load_run(name)
    method = run.network if run.has_step else run.scheme
    if method is None:
        raise InputError(f"{name}: the run has no formula, so it cannot be used as a scheme")
    check_equation(f"{name}: the run", method.equation, equation)
    return method


def _raise_if_unstable(done: Simulation) -> None:
    """Raise InstabilityError if a run blew up; the message has the planned number of steps."""
    if done.blew_up_at is not None:
        of = "" if done.problem.end_time is not None else f" of {done.problem.steps or 50}"
        raise InstabilityError(f"scheme {done.scheme!r} blew up at step {done.blew_up_at}{of}")


def _write(done: Comparison | Simulation, output: Output) -> list[Path]:
    """Write the files of a run or of a comparison, and return their paths; none without a folder."""
    if output.folder is None:
        return []
    if isinstance(done, Simulation):
        return write_run(done, output.folder, gif=output.gif, overwrite=output.overwrite)
    return write_comparison(done, output.folder, gif=output.gif, overwrite=output.overwrite)


def _document(comparison: Comparison, files: Sequence[Path]) -> dict[str, Any]:
    """The JSON document: the summary of one run, or the summaries of several and the table of their comparison."""
    summaries = [asdict(simulation.summary()) for simulation in comparison.simulations]
    if len(summaries) == 1:
        return {**summaries[0], "files": list(files)}
    return {"simulations": summaries, "comparison": [asdict(row) for row in comparison.table()], "files": list(files)}


def _show_results(comparison: Comparison, problem: Problem, files: Sequence[Path]) -> None:
    first = comparison.simulations[0]
    show_pairs(_describe(first))
    if len(comparison.simulations) > 1:
        show()
        _show_table(comparison)
        show()
    for note in problem.mesh.notes:
        show(f"note: {note}")
    if first.blew_up_at is None and not np.any(first.fields):
        show(f"note: {first.words.unknown} is 0 everywhere: give --initial, --source or --boundary")
    _show_files(files)


def _show_files(files: Sequence[Path]) -> None:
    """Print the names of files by folder, and of .vtu files only their number."""
    for folder in dict.fromkeys(path.parent for path in files):
        here = [path for path in files if path.parent == folder]
        fields = sum(path.suffix == ".vtu" for path in here)
        names = [path.name for path in here if path.suffix != ".vtu"]
        show(f"wrote {folder}{os.sep}: {', '.join([f'{fields} fields (.vtu)', *names] if fields else names)}")


def _describe(done: Simulation) -> Iterator[tuple[str, str]]:
    """The lines of a run's summary: labels and values as text."""
    summary = done.summary()
    yield "scheme", done.scheme if isinstance(done.problem.scheme, Scheme) else f"{done.scheme} (a trained network)"
    yield "cells", f"{done.graph.cells:,}"
    yield "steps", f"{done.steps:,}, to time {number(float(done.times[-1]))}"
    limits = {"unknown": "unknown", "unlimited": "unlimited", "finite": number(done.dt_limit)}
    limit = limits[summary.dt_limit_kind]
    share = summary.dt_over_fourier
    reference = name_reference_step(done.problem.scheme.equation) if done.dt_choice is None else done.words.step_name
    of_fourier = "" if share is None else f", {number(share)} of the {reference}"
    chosen = "" if done.dt_choice is None else f" ({done.dt_choice})"
    yield "Δt", f"{number(done.dt)}{chosen}{of_fourier}; stability limit: {limit}"
    ended = done.blew_up_at is None
    yield (
        f"{done.words.unknown} at the end" if ended else f"{done.words.unknown}, saved at step {done.steps:,}",
        f"{number(summary.min)} to {number(summary.max)}, mean {number(summary.mean)}",
    )
    yield done.words.total, number(summary.heat)
    yield f"energy ½ Σ V {done.words.unknown}²", number(summary.energy)
    yield "time per step", duration(done.seconds_per_step)


def _show_table(comparison: Comparison) -> None:
    """Print a table of the schemes with their differences from the first one."""
    columns = ("scheme", "relative L2", "relative max", "min", "max", "mean", "per step", "outcome")
    rows = [
        (
            row.scheme,
            *(number(value, 3) for value in (row.l2_difference, row.linf_difference)),
            *(number(value) for value in (row.min, row.max, row.mean)),
            duration(row.seconds_per_step),
            "ok" if row.blew_up_at is None else f"blew up at step {row.blew_up_at}",
        )
        for row in comparison.table()
    ]
    show_table(columns, rows, right=columns[1:7])


def run_steady(
    names: Sequence[str], output: Output, problem: Problem, *, diffusivity: float | None, solver: str
) -> None:
    """Solve for the steady state of one scheme; raises InputError for several schemes, --gif or another solver."""
    if len(names) > 1 or output.gif:
        raise InputError("--steady computes one field with one scheme: leave out --compare and --gif")
    if solver not in SOLVERS_OF_STEADY_STATES:
        raise InputError(f"--solver with --steady should be one of {', '.join(SOLVERS_OF_STEADY_STATES)}; got {solver}")
    with show_status("solving for the steady state", quiet=output.as_json):
        state = steady(
            names[0],
            problem.mesh,
            equation=problem.equation,
            parameters=problem.parameters,
            diffusivity=diffusivity,
            source=problem.source,
            boundary=problem.boundary,
            solver=solver,
        )
        files = [] if output.folder is None else state.save(output.folder, overwrite=output.overwrite)
    summary = state.summary()
    if output.as_json:
        show_json({**asdict(summary), "files": files})
        return
    show_pairs(
        [
            ("scheme", summary.scheme),
            ("cells", f"{summary.cells:,}"),
            (state.words.unknown, f"{number(summary.min)} to {number(summary.max)}, mean {number(summary.mean)}"),
            (state.words.total, number(summary.heat)),
            ("residual", number(summary.residual)),
            ("time", duration(summary.seconds)),
        ]
    )
    if files:
        show(f"wrote {output.folder}: {', '.join(path.name for path in files)}")


def run_again(folder: Path, output: Output) -> None:
    """Repeat the run of a folder, and print whether its last field agrees bit for bit."""
    _run_saved(read_problem(folder), output, before=folder)


def continue_run(folder: Path, output: Output, times: Times) -> None:
    """Continue the run of a folder from its last saved field."""
    _run_saved(continue_problem(folder, **vars(times)), output, before=None)


def _run_saved(problem: SavedProblem, output: Output, *, before: Path | None) -> None:
    name = problem.scheme.name
    if output.folder is not None:
        prepare_folder(output.folder, [name], overwrite=output.overwrite)
    jax.config.update("jax_enable_x64", True)
    with progress_bar(name, problem.steps, quiet=output.as_json) as tell:
        done = run_problem(problem, throw=False, progress=tell)
    equal = None if before is None else bool(np.array_equal(read_final(before), done.final))
    files = _write(done, output)
    if output.as_json:
        more = {} if equal is None else {"equal": equal}
        show_json({**asdict(done.summary()), "files": files, **more})
    else:
        show_pairs(_describe(done))
        if equal is not None:
            show(f"the last field is {'equal to' if equal else 'not equal to'} that of {before}")
        _show_files(files)
    _raise_if_unstable(done)
