"""The gallery: the fluxes discovered by experiments for several seeds, and runs of decoys, as tables."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_high
from typing import Any

from fluxforge import recipe
from fluxforge._files import write_document, write_text
from fluxforge._machine import environment
from fluxforge.experiment._fit import ROUND_OFF, WITHIN
from fluxforge.pipeline._discover import discover, resume
from fluxforge.pipeline._folder import run_folder
from fluxforge.pipeline._outcome import read_result
from fluxforge.run._progress import Progress, Warn, prefix_progress, silent
from fluxforge.run._record import Record
from fluxforge.run.result import Discovery, to_document


@dataclass(frozen=True)
class Exhibit:
    """A recipe to be run, possibly with another equation; a decoy has data from a law instead of the equation.

    `asked` describes the flux that is searched for.
    """

    recipe: str
    asked: str
    equation: str | None = None
    law: str | None = None
    decoy: str = ""

    @property
    def name(self) -> str:
        """The name of its run folders without the seed."""
        return "-".join(filter(None, (self.recipe, self.equation, self.decoy.replace(" ", "-"))))


_SERIES = "(T_P - T_N)/(d_P/k_P + d_N/k_N)"
_ARITHMETIC = "(k_P + k_N)/2*(T_P - T_N)/(d_P + d_N)"
_UPWIND = "(max(velocity_n, 0)*u_P + min(velocity_n, 0)*u_N)"
_LAYER = "velocity_n*(u_P/(1 - exp(-velocity_n*delta/D)) + u_N/(1 - exp(velocity_n*delta/D)))"
# The fluxes that the gallery searches for.
EXHIBITS = (
    Exhibit("conductance", "the flux between two cells where the conductivity jumps"),
    Exhibit("upwind", "the flux of what a velocity of either sign carries"),
    Exhibit("exponential", "the flux of steady transport with diffusion, Péclet numbers from -20 to 20"),
    Exhibit("godunov", "the flux of Burgers' equation, from Riemann problems"),
    Exhibit("godunov", "the flux of traffic, from Riemann problems", equation="traffic"),
)

# Laws whose formulas must not be identified with the textbook's flux.
DECOYS = (
    Exhibit("conductance", "the arithmetic mean of the conductivities", law=_ARITHMETIC, decoy="arithmetic"),
    Exhibit(
        "conductance", "2 % of an arithmetic mean", law=f"0.98*{_SERIES} + 0.02*{_ARITHMETIC}", decoy="two percent"
    ),
    Exhibit(
        "upwind", "2 % of a central flux", law=f"0.98*{_UPWIND} + 0.02*velocity_n*(u_P + u_N)/2", decoy="two percent"
    ),
    Exhibit("exponential", "2 % of an upwind flux", law=f"0.98*{_LAYER} + 0.02*{_UPWIND}", decoy="two percent"),
    Exhibit(
        "godunov",
        "the flux of Lax and Friedrichs on a coarse grid",
        law="direction_n*(u_P**2 + u_N**2)/4 - abs(direction_n)*(u_N - u_P)/4",
        decoy="lax-friedrichs",
    ),
)


class AblationRow(Record, frozen=True, kw_only=True):
    """A formula from the same data without a network, its error on held-out fluxes, and whether it agrees with them.

    It agrees if its error is at most three times that of the data, which is a weaker condition than the verdict's.
    """

    method: str
    formula: str
    error: float | None
    agrees: bool = False


class GalleryRow(Record, frozen=True, kw_only=True):
    """One run: the flux searched for, the network's variables, the formula found, and whether it is the textbook's."""

    exhibit: str
    asked: str
    seed: int
    sees: tuple[str, ...]
    verdict: str
    found: str | None
    error: float | None
    textbook: str | None
    same: bool
    decoy: bool
    seconds: float
    processor: str = ""
    threads: int = 0
    ablations: tuple[AblationRow, ...] = ()


class Gallery(Record, frozen=True, kw_only=True):
    """All runs as rows, with their seeds, command, hardware and environment."""

    seeds: tuple[int, ...]
    command: str
    hardware: str
    environment: dict[str, str]
    rows: tuple[GalleryRow, ...]


@dataclass(frozen=True)
class GalleryRun:
    """One run of the gallery: its exhibit and seed, the recipe, and the run folder."""

    exhibit: Exhibit
    seed: int
    spec: recipe.Recipe
    folder: Path

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self.folder.name

    @property
    def command(self) -> str:
        """The command line that makes the same run."""
        words = ["fluxforge", "discover", self.exhibit.recipe, "--seed", str(self.seed)]
        words += [] if self.exhibit.equation is None else ["--equation", self.exhibit.equation]
        words += [] if self.exhibit.law is None else ["--set", f"data.law={self.exhibit.law}"]
        return shlex.join([*words, "-o", str(self.folder)])

    def read(self) -> Discovery | None:
        """The result in the run folder, None if it is not finished; raises InputError for a run of another recipe."""
        if not (self.folder / "run.json").exists():
            return None
        with run_folder(self.folder, self.spec, warn=lambda _: None) as held:
            result = read_result(self.spec, held)
        assert result is None or isinstance(result, Discovery)
        return result


def plan_gallery(folder: Path, seeds: Sequence[int]) -> tuple[GalleryRun, ...]:
    """The runs of a gallery, in folders FOLDER/NAME-SEED: each exhibit with every seed, each decoy with the first."""
    runs = []
    for each in (*EXHIBITS, *DECOYS):
        for seed in seeds[:1] if each.decoy else seeds:
            changes: dict[str, Any] = {"seed": seed}
            changes |= {} if each.equation is None else {"equation": each.equation}
            changes |= {} if each.law is None else {"data.law": each.law}
            spec = recipe.override(recipe.load(each.recipe), changes)
            runs.append(GalleryRun(each, seed, spec, folder / f"{each.name}-{seed}"))
    return tuple(runs)


def make_gallery(
    folder: Path,
    runs: Sequence[GalleryRun],
    *,
    command: str,
    tell: Progress = silent,
    warn: Warn = lambda _: None,
) -> Gallery:
    """Make the runs that are not finished, one after another, and write gallery.json and gallery.md with all runs."""
    rows = []
    for done, run in enumerate(runs):
        tell(run.name, done, len(runs))
        rows.append(_make_row(run, _finish(run, tell, warn)))
    seeds = tuple(dict.fromkeys(run.seed for run in runs))
    machines = dict.fromkeys(f"{row.processor}, {row.threads} threads a run" for row in rows)
    gallery = Gallery(
        seeds=seeds, command=command, hardware="; ".join(machines), environment=environment(), rows=tuple(rows)
    )
    write_document(folder / "gallery.json", "gallery", 1, to_document(gallery))
    write_text(folder / "gallery.md", format_gallery(gallery))
    return gallery


def _finish(run: GalleryRun, tell: Progress, warn: Warn) -> Discovery:
    progress = prefix_progress(tell, run.name)
    if (done := run.read()) is not None:
        return done
    if (run.folder / "run.json").exists():
        completed = resume(run.folder, tell=progress, warn=warn)
    else:
        completed = discover(run.spec, run.folder, command=run.command, tell=progress, warn=warn)
    assert isinstance(completed.result, Discovery)
    return completed.result


def _make_row(run: GalleryRun, result: Discovery) -> GalleryRow:
    experiment = result.experiment
    assert experiment is not None
    assert result.verdict is not None
    limit = WITHIN * (experiment.data.error or 0.0) + ROUND_OFF
    without = () if result.ablations is None else result.ablations.found
    return GalleryRow(
        exhibit=run.exhibit.name,
        asked=run.exhibit.asked,
        seed=run.seed,
        sees=experiment.data.variables,
        verdict=result.verdict,
        found=experiment.flux,
        error=experiment.error,
        textbook=None if experiment.textbook is None else experiment.textbook.formula,
        same=experiment.textbook is not None and experiment.textbook.same,
        decoy=bool(run.exhibit.decoy),
        seconds=sum(value or 0.0 for value in result.seconds.values()),
        processor=experiment.processor,
        threads=experiment.threads,
        ablations=tuple(
            AblationRow(
                method=each.method,
                formula=each.formula or "",
                error=each.error,
                agrees=each.error is not None and each.error <= limit,
            )
            for each in without
        ),
    )


def format_gallery(gallery: Gallery) -> str:
    """The gallery as Markdown tables: rates over the seeds, errors with and without a network, and all runs."""
    lines = [
        "| flux searched for | textbook's flux found | approximations | refused | seconds, median | textbook's flux |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in dict.fromkeys(row.exhibit for row in gallery.rows if not row.decoy):
        rows = [row for row in gallery.rows if row.exhibit == name]
        same = sum(row.same and row.verdict == "recovered" for row in rows)
        counts = [sum(row.verdict == verdict for row in rows) for verdict in ("approximation", "refused")]
        seconds = median_high(row.seconds for row in rows)
        cells = (f"`{name}`: {rows[0].asked}", f"{same} of {len(rows)}", *counts, f"{seconds:.0f}", rows[0].textbook)
        lines.append(_format_cells(*cells))
    lines += [
        "",
        *_format_ablations(gallery),
        "",
        "| run | seed | the network sees | found | verdict | error | same as the textbook's | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *map(_format_run, gallery.rows),
    ]
    return "\n".join(lines) + "\n"


def _format_ablations(gallery: Gallery) -> list[str]:
    """A table of how often formulas agree with held-out data, with a network and without, and of median errors."""
    rows = [row for row in gallery.rows if not row.decoy]
    methods = tuple(dict.fromkeys(each.method for row in rows for each in row.ablations))
    lines = [_format_cells("agrees with held-out data (median error)", "with a network", *methods)]
    lines.append(_format_cells(*("---" for _ in range(2 + len(methods)))))
    for name in dict.fromkeys(row.exhibit for row in rows):
        runs = [row for row in rows if row.exhibit == name]
        cells = [_count(runs, [(row.error, row.verdict == "recovered") for row in runs])]
        for method in methods:
            without = [each for row in runs for each in row.ablations if each.method == method]
            cells.append(_count(runs, [(each.error, each.agrees) for each in without]))
        lines.append(_format_cells(f"`{name}`", *cells))
    return lines


def _count(runs: Sequence[GalleryRow], outcomes: list[tuple[float | None, bool]]) -> str:
    """A text with the number of runs that agree and the median error; without a formula the error is infinite."""
    errors = [math.inf if error is None else error for error, _ in outcomes]
    median = median_high(errors) if errors else math.inf
    words = f"{median:.1e}" if math.isfinite(median) else "no formula"
    return f"{sum(agrees for _, agrees in outcomes)} of {len(runs)} ({words})"


def _format_run(row: GalleryRow) -> str:
    name = f"decoy: {row.asked}" if row.decoy else f"`{row.exhibit}`"
    error = "" if row.error is None else f"{row.error:.1e}"
    formula = "none" if row.found is None else f"`{row.found}`"
    same = "yes" if row.same else "no"
    return _format_cells(name, row.seed, ", ".join(row.sees), formula, row.verdict, error, same, f"{row.seconds:.0f}")


def _format_cells(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", r"\|") for cell in cells) + " |"
