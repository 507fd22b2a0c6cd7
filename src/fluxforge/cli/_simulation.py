"""What `fluxforge simulate` runs: read the problem, run the schemes, write and print the results."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fluxforge.certify import NUMERICAL_FAILURES, alignment, linear_field_defect, other_equation
from fluxforge.cli._boundary import parse_boundary
from fluxforge.cli._output import duration, number, show, show_json, show_pairs, show_table
from fluxforge.cli._progress import doing, progress_bar, use_64_bits
from fluxforge.cli._settings import describe_divergence, read_settings
from fluxforge.errors import InstabilityError
from fluxforge.mesh import Conditions, Mesh, Settings, dual, read
from fluxforge.pde import HEAT, Equation, Where
from fluxforge.scheme import Scheme, find, linear_stages, split_name
from fluxforge.stepping import (
    Comparison,
    Simulation,
    TrainedNetwork,
    compare,
    prepare_folder,
    read_field,
    write_comparison,
    write_run,
)


@dataclass(frozen=True)
class Request:
    """The schemes to run, the others compared with the first, and what to write where."""

    schemes: tuple[str, ...]
    folder: Path | None
    gif: bool
    overwrite: bool
    as_json: bool

    def prepare(self) -> None:
        """Check the output folder before anything is computed: InputError if it contains an earlier run."""
        if self.folder is not None:
            prepare_folder(self.folder, [_find_method(name).name for name in self.schemes], overwrite=self.overwrite)


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


def run(request: Request, problem: Problem, *, steps: int | None, **options: Any) -> None:
    """Run the schemes, write and print the results; raises InstabilityError after that if one blew up."""
    schemes = [_find_method(name, problem.equation) for name in request.schemes]
    use_64_bits()
    what = schemes[0].name if len(schemes) == 1 else f"{len(schemes)} schemes"
    total = None if options.get("end_time") is not None else (steps or 50) * len(schemes)
    # What Python warns of is among the notes.
    with progress_bar(what, total, quiet=request.as_json) as tell, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        comparison = compare(
            schemes,
            problem.mesh,
            initial=problem.initial,
            source=problem.source,
            boundary=problem.boundary,
            parameters=problem.parameters,
            steps=steps,
            throw=False,
            progress=tell,
            **options,
        )
    with doing("writing the fields", quiet=request.as_json):
        files = _write(comparison, request)
    with doing("checking the schemes", quiet=request.as_json):
        doubts = [note for done in comparison.simulations for note in done.notes]
        doubts += notes([each for each in schemes if isinstance(each, Scheme)], problem.mesh, problem.parameters)
    if request.as_json:
        show_json({**_document(comparison, files), "notes": doubts})
    else:
        _show_results(comparison, problem, files)
        for note in doubts:
            show(f"note: {note}")
    for done in comparison.simulations:
        if done.blew_up_at is not None:
            raise InstabilityError(f"scheme {done.scheme!r} blew up at step {done.blew_up_at}{_of(done)}")


def _find_method(name: str, equation: str | Equation | None = None) -> Scheme | TrainedNetwork:
    """A scheme by name or file, or the network of a run by the run's folder."""
    if not (Path(name) / "run.json").is_file():
        return find(name, equation)
    # Imported here, with all that trains: few simulations need it.
    from fluxforge.pipeline import load_run

    return load_run(name).network


def _of(done: Simulation) -> str:
    """How many steps a run was to take."""
    assert done.problem is not None
    return "" if done.problem.end_time is not None else f" of {done.problem.steps or 50}"


def _write(comparison: Comparison, request: Request) -> list[Path]:
    if request.folder is None:
        return []
    if len(comparison.simulations) > 1:
        return write_comparison(comparison, request.folder, gif=request.gif, overwrite=request.overwrite)
    return write_run(comparison.simulations[0], request.folder, gif=request.gif, overwrite=request.overwrite)


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


# Defects of linear fields below this share of the fluxes are round-off.
ROUND_OFF = 1e-8
# Beyond this many cells the patch test takes longer than a short run.
MOST_CELLS = 200_000


def notes(schemes: Sequence[Scheme], mesh: Mesh, parameters: Settings | None = None) -> list[str]:
    """One line per reason to doubt the result, with the schemes it concerns: consistency, equation, mesh."""
    about: dict[str, list[str]] = {}
    for scheme in schemes:
        doubt = _doubt_of_tensor(scheme, mesh, parameters or {}) or _doubt(scheme, mesh, parameters or {})
        if doubt is not None:
            about.setdefault(doubt, []).append(scheme.name)
    if not schemes:
        return []
    flow = describe_divergence(schemes[0].equation, dual(mesh), parameters or {})
    return [*(f"{', '.join(names)}: {doubt}" for doubt, names in about.items()), *([flow] if flow else [])]


def _doubt_of_tensor(scheme: Scheme, mesh: Mesh, parameters: Settings) -> str | None:
    """On how many faces the two-point flux of a tensor cannot be consistent."""
    if scheme.equation.diffusion_tensor is None:
        return None
    found = alignment(scheme, dual(mesh), parameters=parameters)
    return None if found is None or found.holds else str(found)


def _doubt(scheme: Scheme, mesh: Mesh, parameters: Settings) -> str | None:
    made = split_name(scheme.name) is not None and scheme == find(scheme.name, scheme.equation)
    if made and (linear_stages(scheme) is None or not scheme.equation.only_diffuses):
        return None  # Derived from the equation itself.
    if linear_stages(scheme) is None:
        return f"nonlinear; that it solves the {scheme.equation.name} equation is not established"
    with jax.enable_x64(True), np.errstate(all="ignore"):
        try:
            wrong = other_equation(scheme)
            if wrong is not None:
                return f"solves another equation: {wrong}"
            return _doubt_on_mesh(scheme, mesh, parameters) if scheme.equation.only_diffuses else None
        except NUMERICAL_FAILURES as error:
            reason = " ".join(str(error).split())
            return f"that it solves the {scheme.equation.name} equation is not established ({reason})"


def _doubt_on_mesh(scheme: Scheme, mesh: Mesh, parameters: Settings) -> str | None:
    # A linear field is no solution where parameters vary.
    if len(mesh.cells) > MOST_CELLS or any(p.where is not Where.CONSTANT for p in scheme.equation.parameters):
        return None
    off = linear_field_defect(scheme, dual(mesh), parameters=parameters)
    if off <= ROUND_OFF:
        return None
    remedy = "" if scheme.name == "corrected" or scheme.equation != HEAT else "; `corrected` is exact for them"
    return f"not consistent on this mesh: linear fields are off by up to {off:.1%} of a cell's fluxes{remedy}"
