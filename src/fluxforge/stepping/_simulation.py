"""The results of a run: fields, summary, errors, figures and files; and the comparison of several runs."""

import base64
import html
import io
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
from jaxtyping import Float
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from fluxforge._arguments import check_flag, check_kind, check_path
from fluxforge._files import atomic_path, write_document, write_text
from fluxforge._types import CellField
from fluxforge.mesh._boundary import Value
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._picture import save_figure
from fluxforge.mesh._write import write
from fluxforge.pde._words import Words
from fluxforge.stepping._field import CELL, field_on_cells
from fluxforge.stepping._folder import folder_names, replace_folder
from fluxforge.stepping._limit import limit_kind
from fluxforge.stepping._picture import comparison_figure, draw_with_bar, field_figure
from fluxforge.stepping._problem import Problem, write_problem

# Above this, drawing takes more than about a second.
MOST_CELLS_SHOWN = 50_000


@dataclass(frozen=True)
class ErrorNorms:
    """Norms of e = T − T_exact over the cells: `l2` = (Σ V e²)^½ and `max` = max |e|."""

    l2: float
    max: float


@dataclass(frozen=True)
class Summary:
    """The numbers of a run and of its last field, in the order of `summary.json`.

    `mean`, `energy` ½ Σ V T² and `heat`, the conserved total Σ c V T, are volume-weighted, and None where they
    overflow. `dt_limit` is None both for a step without a limit and for an unknown one: `dt_limit_kind` is `finite`,
    `unlimited` or `unknown`. `dt_over_fourier` is None where there is no reference step.
    """

    scheme: str
    cells: int
    steps: int
    time: float
    dt: float
    dt_over_fourier: float | None
    dt_limit: float | None
    dt_limit_kind: str
    min: float
    max: float
    mean: float | None
    energy: float | None
    heat: float | None
    seconds_per_step: float
    blew_up_at: int | None


@dataclass(frozen=True)
class ComparisonRow:
    """A scheme's differences from the first one of a comparison, relative to it, and its own numbers.

    The differences are None for a scheme that took fewer steps, because it blew up.
    """

    scheme: str
    l2_difference: float | None
    linf_difference: float | None
    min: float
    max: float
    mean: float | None
    seconds_per_step: float
    blew_up_at: int | None


@dataclass(frozen=True, eq=False)
class Simulation:
    """The saved fields of a run (`times`, `fields`, the last one `final`), its mesh, steps and limits.

    `blew_up_at` is the number of the step at which the field blew up, or None; `dt_choice` is a text on how an
    automatic step was chosen, or None; `problem` are the arguments of the run, and `notes` are remarks on it.
    """

    scheme: str
    mesh: Mesh
    graph: DualGraph
    times: Float[np.ndarray, " frames"]
    fields: Float[np.ndarray, "frames cells"]
    dt: float
    dt_fourier: float
    dt_limit: float | None
    steps: int
    seconds_per_step: float
    blew_up_at: int | None
    words: Words
    capacity: CellField
    dt_choice: str | None
    problem: Problem
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        where = f"{self.scheme:.60} on {self.graph.cells:,} cells"
        span = f"{self.words.unknown} from {self.final.min():.4g} to {self.final.max():.4g}"
        ended = "" if self.blew_up_at is None else f", blew up at step {self.blew_up_at}"
        return f"Simulation({where}: {self.steps:,} steps to t = {self.times[-1]:.4g}, {span}{ended})"

    def _repr_html_(self) -> str:
        """The summary line and, on meshes of at most 50,000 cells, a picture of the last field."""
        line = f"<p>{html.escape(repr(self))}</p>"
        if self.graph.cells > MOST_CELLS_SHOWN or not np.isfinite(self.final).all():
            return line
        picture = io.BytesIO()
        self.plot().savefig(picture, format="png", dpi=80)
        data = base64.b64encode(picture.getvalue()).decode("ascii")
        return f'{line}<img alt="last field" src="data:image/png;base64,{data}"/>'

    @property
    def final(self) -> CellField:
        """The last saved field, one value per cell."""
        return self.fields[-1]

    def plot(self) -> Figure:
        """A matplotlib figure of the last saved field; `figure.savefig(path)` writes it."""
        return field_figure(self.mesh, self.final, unknown=self.words.unknown, title=_caption(self, -1))

    def save(self, folder: str | os.PathLike[str], *, gif: bool = False, overwrite: bool = False) -> list[Path]:
        """Write what `fluxforge simulate -o FOLDER` writes (see `write_run`); return the paths of the files."""
        return write_run(self, folder, gif=gif, overwrite=overwrite)

    def error(self, exact: Value | np.ndarray) -> ErrorNorms:
        """The error of the last saved field against a solution at its time, taken at the centroids of the cells.

        `exact` is a formula of the coordinates and the time t, a number, a function of the coordinates that may take
        the time after them, or an array over cells. Raises InputError (ExpressionError for a formula) for anything
        else.
        """
        graph = self.graph
        apart = np.abs(self.final - field_on_cells(exact, graph, "exact", time=float(self.times[-1])))
        # Divided first: squares of large errors would overflow.
        largest = float(apart.max())
        scale = largest or 1.0
        return ErrorNorms(l2=scale * float(np.sqrt(graph.V @ (apart / scale) ** 2)), max=largest)

    def summary(self) -> Summary:
        """The numbers of the run and of its last saved field."""
        T, V = self.final, self.graph.V
        with np.errstate(all="ignore"):
            mean, energy, heat = V @ (T / V.sum()), 0.5 * V @ T**2, (self.capacity * V) @ T
        return Summary(
            scheme=self.scheme,
            cells=self.graph.cells,
            steps=self.steps,
            time=float(self.times[-1]),
            dt=self.dt,
            dt_over_fourier=self.dt / self.dt_fourier if math.isfinite(self.dt_fourier) else None,
            dt_limit=None if self.dt_limit is None or math.isinf(self.dt_limit) else self.dt_limit,
            dt_limit_kind=limit_kind(self.dt_limit),
            min=float(T.min()),
            max=float(T.max()),
            mean=_finite_or_none(mean),
            energy=_finite_or_none(energy),
            heat=_finite_or_none(heat),
            seconds_per_step=self.seconds_per_step,
            blew_up_at=self.blew_up_at,
        )


def _finite_or_none(value: np.floating) -> float | None:
    return float(value) if np.isfinite(value) else None


@dataclass(frozen=True)
class Comparison:
    """Runs of several schemes on one problem; the others are compared with the first."""

    simulations: tuple[Simulation, ...]

    def __repr__(self) -> str:
        """A line per scheme, with its relative differences from the first one as in `table`."""
        rows = [f"  {_row_text(row)}" for row in self.table()]
        return "\n".join([f"Comparison of {len(rows)} schemes:", *rows])

    def table(self) -> list[ComparisonRow]:
        """One row per scheme."""
        with np.errstate(all="ignore"):
            return [_compare_with(self.simulations[0], other) for other in self.simulations]

    def plot(self) -> Figure:
        """The last field of each scheme, and the difference of each one after the first from the first."""
        first, *others = runs = self.simulations
        return comparison_figure(
            first.mesh,
            {f"{k}": run.final for k, run in enumerate(runs)},
            [(f"{k}", "0") for k in range(1, len(runs))],
            titles=[*(_caption(run, -1) for run in runs), *(f"{run.scheme} − {first.scheme}" for run in others)],
            unknown=first.words.unknown,
        )


def _row_text(row: ComparisonRow) -> str:
    apart = "" if row.l2_difference is None else f"relative L2 {row.l2_difference:.3g}, max {row.linf_difference:.3g}, "
    ended = "" if row.blew_up_at is None else f", blew up at step {row.blew_up_at}"
    return f"{row.scheme:.60}: {apart}from {row.min:.4g} to {row.max:.4g}{ended}"


def _compare_with(first: Simulation, other: Simulation) -> ComparisonRow:
    l2 = linf = None
    if first.steps == other.steps:
        apart, T, V = other.final - first.final, first.final, first.graph.V
        largest = float(np.abs(T).max()) or 1.0
        # Divided first: squares of large fields would overflow.
        size = np.sqrt(V @ (T / largest) ** 2) or 1.0
        l2 = float(np.sqrt(V @ (apart / largest) ** 2) / size)
        linf = float(np.abs(apart).max() / largest)
    own = other.summary()
    return ComparisonRow(
        scheme=own.scheme,
        l2_difference=l2,
        linf_difference=linf,
        min=own.min,
        max=own.max,
        mean=own.mean,
        seconds_per_step=own.seconds_per_step,
        blew_up_at=own.blew_up_at,
    )


def animation(simulation: Simulation, path: str | os.PathLike[str]) -> None:
    """Write all saved fields as an animated GIF, on one colour scale."""
    figure = Figure(figsize=(5.4, 4.6), layout="constrained")
    axes = figure.add_subplot()
    fields = simulation.fields
    low, high = float(fields.min()), float(fields.max())
    patches = draw_with_bar(axes, simulation.mesh, fields[0], label=simulation.words.unknown, vmin=low, vmax=high)
    title = axes.set_title(_caption(simulation, 0), fontsize=11)

    def show(frame: int) -> list[Artist]:
        patches.set_array(fields[frame])
        title.set_text(_caption(simulation, frame))
        return [patches, title]

    with atomic_path(path) as temporary:
        FuncAnimation(figure, show, frames=len(fields), blit=False).save(temporary, PillowWriter(fps=8), dpi=90)


def _caption(simulation: Simulation, frame: int) -> str:
    return f"{simulation.scheme}, t = {simulation.times[frame]:.4g}"


SUMMARY_VERSION = 1


# Matplotlib's scales overflow for fields near the largest number; the picture is drawn nevertheless.
@np.errstate(all="ignore")
def write_run(
    simulation: Simulation, folder: str | os.PathLike[str], *, gif: bool = False, overwrite: bool = False
) -> list[Path]:
    """Write `T_*.vtu`, `series.pvd`, `final.png`, `summary.json` and, with `gif`, `T.gif`; return their paths.

    `problem.json` and `problem.npz` hold the problem, so that `rerun` and `restart` need only the folder. Raises
    InputError if the folder holds an earlier run, unless `overwrite`: then all its files are replaced, once the new
    ones are complete.
    """
    check_kind(simulation, "simulation", Simulation, "a Simulation, the result of simulate(...)")
    target = _output_folder(folder, gif=gif, overwrite=overwrite)
    with replace_folder(target, [simulation.scheme], overwrite=overwrite) as writing:
        written = _write_run(simulation, writing, gif=gif)
    return [target / path.relative_to(writing) for path in written]


def _output_folder(folder: str | os.PathLike[str], *, gif: bool, overwrite: bool) -> Path:
    check_flag(gif, "gif"), check_flag(overwrite, "overwrite")
    return Path(check_path(folder, "folder", "the path of a folder"))


def _write_run(simulation: Simulation, folder: Path, *, gif: bool) -> list[Path]:
    written = _write_series(simulation, folder)
    save_figure(simulation.plot(), folder / "final.png")
    written.append(folder / "final.png")
    if gif:
        animation(simulation, folder / "T.gif")
        written.append(folder / "T.gif")
    written += write_problem(
        simulation.problem,
        folder,
        dt=simulation.dt,
        step=simulation.problem.first_step + simulation.steps,
        time=float(simulation.times[-1]),
        final=simulation.final,
    )
    write_document(folder / "summary.json", "simulation", SUMMARY_VERSION, asdict(simulation.summary()))
    return [*written, folder / "summary.json"]


def _write_series(simulation: Simulation, folder: Path) -> list[Path]:
    """Write the saved fields as VTU files, and the .pvd file that ParaView opens as one animation; return the paths."""
    digits = len(str(len(simulation.fields) - 1))
    frames = [folder / f"T_{k:0{digits}d}.vtu" for k in range(len(simulation.fields))]
    mixed = (simulation.mesh.cells < 0).any()
    numbers = {CELL: np.arange(len(simulation.mesh.cells))} if mixed else {}
    for path, T in zip(frames, simulation.fields, strict=True):
        write(simulation.mesh, path, cell_data={"T": T} | numbers)
    lines = [
        f'    <DataSet timestep="{time!r}" part="0" file={quoteattr(path.name)}/>'
        for time, path in zip(simulation.times.tolist(), frames, strict=True)
    ]
    head = (
        '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n  <Collection>\n'
    )
    write_text(folder / "series.pvd", head + "\n".join(lines) + "\n  </Collection>\n</VTKFile>\n")
    return [*frames, folder / "series.pvd"]


@np.errstate(all="ignore")
def write_comparison(
    comparison: Comparison, folder: str | os.PathLike[str], *, gif: bool = False, overwrite: bool = False
) -> list[Path]:
    """Write a folder per scheme as `write_run` does, a picture of all final fields, and the table as JSON.

    Raises InputError if the folder holds an earlier run, unless `overwrite`.
    """
    check_kind(comparison, "comparison", Comparison, "a Comparison, the result of compare(...)")
    target = _output_folder(folder, gif=gif, overwrite=overwrite)
    schemes = [simulation.scheme for simulation in comparison.simulations]
    with replace_folder(target, schemes, overwrite=overwrite) as writing:
        written: list[Path] = []
        for name, simulation in zip(folder_names(schemes), comparison.simulations, strict=True):
            written += _write_run(simulation, writing / name, gif=gif)
        save_figure(comparison.plot(), writing / "compare.png", dpi=120)
        content = {"schemes": [asdict(row) for row in comparison.table()]}
        write_document(writing / "compare.json", "comparison", SUMMARY_VERSION, content)
        written += [writing / "compare.png", writing / "compare.json"]
    return [target / path.relative_to(writing) for path in written]
