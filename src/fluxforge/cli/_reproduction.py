"""Run `fluxforge reproduce`, the paper or the gallery, and print the results."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import typer

from fluxforge.cli._discovery import show_arms
from fluxforge.cli._output import question_bar, say, show, show_json, show_pairs, show_table, warn
from fluxforge.cli._signals import count_done
from fluxforge.errors import DiscoveryError, InputError
from fluxforge.paper._compare import ChangedNumber, Comparison, PartComparison, compare
from fluxforge.paper._figures_training import controls_table, rates_table
from fluxforge.paper._run import PARTS, Reproduction, read_documents, reproduce, write_reproduction
from fluxforge.paper.studies import controls, generalisation, higher_order, rates, symbolic
from fluxforge.recipe._recipe import Changes
from fluxforge.recipe._schema import to_dict
from fluxforge.run._progress import Progress
from fluxforge.run._record import Document
from fluxforge.run.result import to_document
from fluxforge.sweeps._gallery import GalleryRun, format_gallery, make_gallery, plan_gallery
from fluxforge.sweeps._plan import parse_seeds
from fluxforge.sweeps._pool import check_workers, run_processes
from fluxforge.sweeps._worker import Job

# Largest number of differing numbers that are printed per part.
MOST_SHOWN = 8


def run(
    names: Sequence[str],
    folder: Path,
    *,
    preset: str,
    changes: Changes,
    again: bool,
    check: Path | None,
    as_json: bool,
) -> None:
    """Run the parts, write the page of all results in the folder, and print tables and verdicts, or JSON.

    `preset`, `changes` and `again` are those of `fluxforge.paper.reproduce`; `check` is the folder of kept results to
    compare with.
    """
    kept = {} if check is None else read_documents(check)
    if check is not None and not kept:
        raise InputError(f"{check}: contains no results to compare with")
    results: dict[str, Document] = {}
    for name in names:
        with question_bar(name, quiet=as_json) as tell:
            told = count_done(tell)
            results[name] = reproduce(
                name, preset=preset, changes=changes, folder=folder, again=again, tell=told, warn=warn
            )
    whole = write_reproduction(folder, command=f"fluxforge reproduce {' '.join(names)}")
    compared = None if check is None else compare(read_documents(folder), kept)
    if as_json:
        show_json(_to_document(results, whole, compared))
    else:
        _show_results(results, whole, compared, folder)
    if compared is not None and compared.verdicts:
        raise typer.Exit(1)


def _to_document(results: Mapping[str, Document], whole: Reproduction, compared: Comparison | None) -> Document:
    """The document of a single part; for several, or with a comparison, all documents and the claims of the paper."""
    if compared is not None:
        return {"parts": results, **msgspec.to_builtins(whole), "check": compared.document()}
    if len(results) > 1:
        return {"parts": results, **msgspec.to_builtins(whole)}
    return next(iter(results.values()))


def _show_results(
    results: Mapping[str, Document], whole: Reproduction, compared: Comparison | None, folder: Path
) -> None:
    for name, result in results.items():
        show(f"\n{name}\n")
        _show_tables(name, result)
        _show_claims(result)
        show(f"\nfigures and data: {folder / name}")
    if len(results) > 1:
        show("\nthe paper's claims\n")
        columns = ("section", "claim", "verdict")
        texts = [textwrap.shorten(row.text, 62, placeholder=" …") for row in whole.claims]
        show_table(columns, [(row.section, text, row.verdict) for row, text in zip(whole.claims, texts, strict=True)])
    if compared is not None:
        _show_comparison(compared)
    counts = ", ".join(f"{verdict}: {count}" for verdict, count in whole.counts.items() if count)
    show(f"\nclaims of the paper: {counts}\npage: {whole.page}")


def _show_comparison(compared: Comparison) -> None:
    """Print how verdicts and numbers differ from the kept results."""
    show("\ncompared with the kept results\n")
    for row in compared.verdicts:
        show(f"verdict changed: “{row.text}”: {row.kept} → {row.fresh}")
    if not compared.verdicts:
        show("no verdict differs")
    if compared.kept_rates:
        show(
            "judged with the kept rates over seeds, since the part 'rates' was not run here: "
            f"{', '.join(compared.kept_rates)}"
        )
    if compared.unjudged:
        show(f"judged in only one of the two results: {', '.join(compared.unjudged)}")
    for part in compared.parts:
        _show_part(part)
    for name in compared.only_kept:
        show(f"{name}: among the kept results, but not in this folder")


def _show_part(part: PartComparison) -> None:
    if not part.same_preset:
        presets = f"preset {part.preset_fresh} here, {part.preset_kept} kept"
        show(f"{part.part}: {presets}: only verdicts are compared, numbers need equal presets")
        return
    show(f"{part.part}: {len(part.moved)} of {part.compared} numbers differ")
    show(f"    {', '.join(f'{kind}: {count}' for kind, count in part.counts.items() if count)}")
    if part.digits is not None:
        show(f"    kept to {part.digits} digits: deterministic numbers are compared to half a unit of the last digit")
    for each in part.moved[:MOST_SHOWN]:
        show(f"    {each.where}: {each.kept:.10g} → {_describe_tolerance(each)}")
    if len(part.moved) > MOST_SHOWN:
        show(f"    and {len(part.moved) - MOST_SHOWN} more (all with --json)")


def _describe_tolerance(moved: ChangedNumber) -> str:
    """A text on a number that differs: fresh value, kind, difference, and allowed difference."""
    if moved.fresh is None:
        return f"missing, {moved.kind}"
    value = f"{moved.fresh:.10g}, {moved.kind}"
    if moved.chance is not None:
        return f"{value}: the probability of such counts at equal rates is {moved.chance:.1g}"
    return f"{value}: differs by {abs(moved.fresh - moved.kept):.2g}, allowed {moved.allowed:.2g}"


def _show_tables(name: str, document: Document) -> None:
    """Print the tables of a part, if it has any."""
    match PARTS[name].read(document):
        case rates.Result() as result:
            _show_rates(result)
        case controls.Result() as result:
            table = controls_table(result)
            show_table(table.columns, table.rows, right=("explained", "seconds"))
        case symbolic.Result() as result:
            _show_recovery(result)
        case higher_order.Result() as result:
            _show_residuals(result)
        case generalisation.Result() as result:
            show_arms(result.summary)
            reduced = result.reduced
            reached = f"{reduced.reached} of {reduced.of} sparse networks"
            show(f"\nmerged and pruned: {reached} reach {reduced.lemma_nonzeros} non-zeros, exact on unseen meshes")


def _show_rates(result: rates.Result) -> None:
    """Print the verdicts per recipe, and one line per seed with an unexpected verdict."""
    table = rates_table(result)
    show_table(table.columns, table.rows, right=table.columns[2:])
    for name, counts in result.recipes.items():
        for row in counts.rows:
            if row.verdict != counts.expected:
                show(f"{row.verdict}: {name}, seed {row.seed}: {row.reason}")


def _show_recovery(result: symbolic.Result) -> None:
    """Print how often the formula was recovered, and one line per failure."""
    columns = ("engine", "α", "recovered", "worst constant", "seconds, median")
    rows = [
        (
            row.engine,
            f"{row.diffusivity:g}",
            f"{row.recovered} of {row.of}",
            "" if row.worst_constant is None else f"{row.worst_constant:.1e}",
            f"{row.median_seconds:.0f}",
        )
        for row in result.recovery
    ]
    show_table(columns, rows, right=columns[1:])
    for row in result.rows:
        if not row.recovered:
            show(f"not recovered: {row.engine}, seed {row.seed}, α = {row.diffusivity:g}: {row.reason}")
    for name, hint in result.left_out.items():
        show(f"left out: {name} ({hint})")


def _show_residuals(result: higher_order.Result) -> None:
    """Print mean residuals on unseen meshes, and the ratio of the midpoint rule's to the network's."""
    columns = ("network", "residual", "euler", "midpoint", "below midpoint")
    rows = []
    for name, network in result.networks.items():
        mean = network.residual
        values = (f"{each:.2e}" for each in (mean.network, mean.euler, mean.midpoint))
        rows.append((name, *values, f"{mean.midpoint / mean.network:.1f}×"))
    show_table(columns, rows, right=columns[1:])
    for name, discovery in result.discovered.items():
        show(f"\n{name}: {'recovered' if discovery.recovered else 'not recovered'}")
        off = discovery.constants_uncertainty or {}
        show_pairs((key, f"{value:.6f} ± {off[key]:.0e}") for key, value in (discovery.constants or {}).items())


def _show_claims(result: Document) -> None:
    show("\nclaims of the paper, with verdicts\n")
    for claim in result["claims"]:
        condition = f"{claim['condition'].capitalize()}. " if claim.get("condition") else ""
        show_pairs([(claim["verdict"], f"“{claim['text']}”"), ("", f"{condition}{claim['evidence']}"), ("", "")])


def run_gallery(folder: Path, seeds: str, workers: int, *, as_json: bool) -> None:
    """Run or collect the gallery and print its tables; exit code 1 if a decoy was identified as the textbook's flux."""
    check_workers(workers)
    runs = plan_gallery(folder, parse_seeds(seeds))
    command = f"fluxforge reproduce gallery --seeds {seeds} --workers {workers}"
    with question_bar("gallery", quiet=as_json) as bar:
        tell = count_done(bar)
        if workers > 1:
            run_in_processes([run for run in runs if run.read() is None], workers, folder / "logs", tell)
        gallery = make_gallery(folder, runs, command=command, tell=tell, warn=warn)
    if as_json:
        show_json(to_document(gallery))
    else:
        show(format_gallery(gallery))
        show(f"processor: {gallery.hardware}; data: {folder / 'gallery.json'}, {folder / 'gallery.md'}")
    fooled = [row.exhibit for row in gallery.rows if row.decoy and row.same and row.verdict == "recovered"]
    if fooled:
        say("error", f"decoys were wrongly identified as the textbook's flux: {', '.join(fooled)}", style="bold red")
        raise typer.Exit(1)


def run_in_processes(runs: Sequence[GalleryRun], workers: int, logs: Path, tell: Progress) -> None:
    """Make runs in several processes; raises DiscoveryError, after all have ended, if one failed."""
    jobs = [Job(run.name, str(run.folder.absolute()), to_dict(run.spec), run.command) for run in runs]
    ended: dict[str, str | None] = {}

    def report(name: str, stage: str, done: int, total: int) -> None:
        tell(f"{name}: {stage}", len(ended), len(jobs))

    run_processes(jobs, workers, logs, tell=report, end=ended.__setitem__, warn=warn)
    failed = {name: error for name, error in ended.items() if error is not None}
    if failed:
        name, error = next(iter(failed.items()))
        raise DiscoveryError(f"{len(failed)} of {len(jobs)} runs failed: {name}: {error}")
