"""What `fluxforge simulate` runs: read the problem, run the schemes, write and print the results."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fluxforge.certify._doubts import list_doubts
from fluxforge.cli._arguments import Output, Times
from fluxforge.cli._boundary import parse_boundary
from fluxforge.cli._output import duration, number, show, show_json, show_pairs, show_table
from fluxforge.cli._progress import progress_bar, show_status, use_64_bits
from fluxforge.cli._settings import read_settings
from fluxforge.errors import InputError, InstabilityError
from fluxforge.mesh._boundary import Conditions
from fluxforge.mesh._dual import dual
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._read import read
from fluxforge.pde._equation import Equation
from fluxforge.scheme._document import find
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._field import read_field
from fluxforge.stepping._folder import prepare_folder
from fluxforge.stepping._run import compare
from fluxforge.stepping._simulation import Comparison, Simulation, write_comparison, write_run
from fluxforge.stepping._steady import SOLVERS_OF_STEADY_STATES, steady
from fluxforge.stepping._trained import TrainedNetwork


@dataclass(frozen=True)
class Request:
    """The schemes to run, the others compared with the first, and what to write where."""

    schemes: tuple[str, ...]
    output: Output

    def prepare(self) -> None:
        """Check the output folder before anything is computed: InputError if it contains an earlier run."""
        if self.output.folder is not None:
            names = [_find_method(name).name for name in self.schemes]
            prepare_folder(self.output.folder, names, overwrite=self.output.overwrite)


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
        """Read the mesh and the fields that are given as files."""
        mesh = read(file)
        cells = len(mesh.cells)
        conditions = parse_boundary(boundary, lambda: dual(mesh).tags)
        chosen = read_settings(settings, equation, mesh)
        return Problem(
            mesh,
            initial=_read_value(initial, cells),
            source=_read_value(source, cells),
            boundary=conditions,
            equation=chosen.equation,
            parameters=chosen.parameters,
        )


def _read_value(text: str, cells: int) -> str | np.ndarray:
    return read_field(text[1:], cells) if text.startswith("@") else text


def run(request: Request, problem: Problem, times: Times, **options: Any) -> None:
    """Run the schemes, write and print the results; raises InstabilityError after that if one blew up.

    `options` are further arguments of `fluxforge.simulate`.
    """
    schemes = [_find_method(name, problem.equation) for name in request.schemes]
    use_64_bits()
    what = schemes[0].name if len(schemes) == 1 else f"{len(schemes)} schemes"
    total = None if times.end_time is not None else (times.steps or 50) * len(schemes)
    quiet = request.output.as_json
    # What Python warns of is among the notes.
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
        files = _write(comparison, request.output)
    with show_status("checking the schemes", quiet=quiet):
        doubts = [note for done in comparison.simulations for note in done.notes]
        doubts += list_doubts([each for each in schemes if isinstance(each, Scheme)], problem.mesh, problem.parameters)
    if quiet:
        show_json({**_document(comparison, files), "notes": doubts})
    else:
        _show_results(comparison, problem, files)
        for note in doubts:
            show(f"note: {note}")
    for done in comparison.simulations:
        if done.blew_up_at is not None:
            raise InstabilityError(f"scheme {done.scheme!r} blew up at step {done.blew_up_at}{_describe_steps(done)}")


def _find_method(name: str, equation: str | Equation | None = None) -> Scheme | TrainedNetwork:
    """A scheme by name or file, or the network of a run by the run's folder."""
    if not (Path(name) / "run.json").is_file():
        return find(name, equation)
    # Imported here, with all that trains: few simulations need it.
    from fluxforge.pipeline._run import load_run

    return load_run(name).network


def _describe_steps(done: Simulation) -> str:
    """How many steps a run was to take."""
    assert done.problem is not None
    return "" if done.problem.end_time is not None else f" of {done.problem.steps or 50}"


def _write(comparison: Comparison, output: Output) -> list[Path]:
    if output.folder is None:
        return []
    if len(comparison.simulations) > 1:
        return write_comparison(comparison, output.folder, gif=output.gif, overwrite=output.overwrite)
    return write_run(comparison.simulations[0], output.folder, gif=output.gif, overwrite=output.overwrite)


def _document(comparison: Comparison, files: Sequence[Path]) -> dict[str, Any]:
    """The summary of a run; of several, their summaries and the table of comparison."""
    summaries = [asdict(simulation.summary()) for simulation in comparison.simulations]
    if len(summaries) == 1:
        return {**summaries[0], "files": list(files)}
    return {"simulations": summaries, "comparison": [asdict(row) for row in comparison.table()], "files": list(files)}


def _show_results(comparison: Comparison, problem: Problem, files: Sequence[Path]) -> None:
    first = comparison.simulations[0]
    show_pairs(describe(first))
    if len(comparison.simulations) > 1:
        show()
        _show_table(comparison)
        show()
    for note in problem.mesh.notes:
        show(f"note: {note}")
    if first.blew_up_at is None and not np.any(first.fields):
        still = f"{first.words.unknown} is 0 everywhere"
        show(f"note: {still}: give --initial, --source or --boundary")
    for folder in dict.fromkeys(path.parent for path in files):
        show(f"wrote {folder}{os.sep}: {list_files([path for path in files if path.parent == folder])}")


def list_files(files: Sequence[Path]) -> str:
    """The names of files, with the .vtu fields counted."""
    fields = sum(path.suffix == ".vtu" for path in files)
    names = [path.name for path in files if path.suffix != ".vtu"]
    return ", ".join([f"{fields} fields (.vtu)", *names] if fields else names)


def describe(done: Simulation) -> Iterator[tuple[str, str]]:
    """The lines of a summary."""
    summary = done.summary()
    yield "scheme", done.scheme
    yield "cells", f"{done.graph.cells:,}"
    yield "steps", f"{done.steps:,}, to time {number(float(done.times[-1]))}"
    limits = {"unknown": "unknown", "unlimited": "unlimited", "finite": number(done.dt_limit)}
    limit = limits[summary.dt_limit_kind]
    share = summary.dt_over_fourier
    of_fourier = "" if share is None else f", {number(share)} of the {done.words.step_name}"
    chosen = "" if done.dt_choice is None else f" ({done.dt_choice})"
    yield "Δt", f"{number(done.dt)}{chosen}{of_fourier}; stability limit: {limit}"
    yield (
        f"{done.words.unknown} at the end",
        f"{number(summary.min)} to {number(summary.max)}, mean {number(summary.mean)}",
    )
    yield done.words.total, number(summary.heat)
    yield f"energy ½ Σ V {done.words.unknown}²", number(summary.energy)
    yield "time per step", duration(done.seconds_per_step)


def _show_table(comparison: Comparison) -> None:
    """Print the schemes with their differences to the first one."""
    columns = ("scheme", "L2 difference", "max difference", "min", "max", "mean", "per step", "outcome")
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


def run_steady(request: Request, problem: Problem, *, diffusivity: float | None, solver: str) -> None:
    """Solve for the steady state of one scheme; raises InputError for several, and for a solver it does not take."""
    output = request.output
    if len(request.schemes) > 1 or output.gif:
        raise InputError("--steady takes one scheme and writes one field: leave out --compare and --gif")
    if solver not in SOLVERS_OF_STEADY_STATES:
        raise InputError(f"--steady takes --solver {', '.join(SOLVERS_OF_STEADY_STATES)}; got {solver}")
    with show_status("solving for the steady state", quiet=output.as_json):
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
        files = [] if output.folder is None else found.save(output.folder, overwrite=output.overwrite)
    summary = found.summary()
    if output.as_json:
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
        show(f"wrote {output.folder}: {', '.join(path.name for path in files)}")
