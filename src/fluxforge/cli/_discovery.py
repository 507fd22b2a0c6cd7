"""Run `fluxforge discover` and print the result: verdict, formula, reasons and errors."""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import typer

from fluxforge import recipe
from fluxforge.cli._output import (
    command_line,
    format_value,
    number,
    offer_resume,
    question_bar,
    say,
    show,
    show_json,
    show_pairs,
    show_table,
    warn,
)
from fluxforge.cli._signals import count_done
from fluxforge.pipeline._discover import discover, free_folder, resume
from fluxforge.pipeline._run import Run
from fluxforge.report._discovery_figures import shown_fronts
from fluxforge.report._discovery_words import define_labels, describe_member, label_fronts
from fluxforge.report._page import round_decimals
from fluxforge.run._progress import Progress
from fluxforge.run.carry import CarryResult
from fluxforge.run.limiter import LimiterResult
from fluxforge.run.result import ArmSummary, Discovery, Evaluation, FluxRecord, Generalisation
from fluxforge.run.skew import SkewResult

# The largest number of candidates that are printed of a run without a formula.
MOST_CANDIDATES = 10


def start_run(name: str, output: Path | None, preset: str | None, changes: recipe.Changes, as_json: bool) -> None:
    """Start a new run and show its result."""
    spec = recipe.load(name, preset=preset)
    spec = recipe.override(spec, changes) if changes else spec
    folder = output or free_folder(spec)
    _run(lambda tell: discover(spec, folder, command=command_line(), tell=tell, warn=warn), spec.name, folder, as_json)


def resume_run(folder: Path, as_json: bool) -> None:
    """Continue a run and show its result."""
    _run(lambda tell: resume(folder, tell=tell, warn=warn), folder.name, folder, as_json)


def _run(work: Callable[[Progress], Run], name: str, folder: Path, as_json: bool) -> None:
    """Run `work` with a progress bar and print the result; exit code 1 if it is not what the recipe expects."""
    with offer_resume("discover", folder, "run.json"), question_bar(name, quiet=as_json) as tell:
        run = work(count_done(tell))
    if isinstance(run.result, Discovery) and run.result.ended_by_clock:
        limit = "the search was stopped by its time limit, search.seconds, for"
        warn(f"{limit} {', '.join(run.result.ended_by_clock)}: a faster or slower machine may find other formulas")
    if as_json:
        show_json(run.document)
    else:
        show_result(run, folder)
    if (failure := explain_failure(run)) is not None:
        say("error", f"{failure}; see {folder}", style="bold red")
        raise typer.Exit(1)


def show_result(run: Run, folder: Path) -> None:
    """Print the result of a finished run; `folder` is printed as the place of its files."""
    result = run.result
    if isinstance(result, Generalisation):
        show_arms({"this run": result.summary})
        show(f"\nresults, figures and checkpoints: {folder}; report: {folder / 'report.html'}")
        return
    if isinstance(result, CarryResult):
        _show_carry(result)
    elif isinstance(result, LimiterResult):
        _show_limiter(result)
    elif isinstance(result, SkewResult):
        _show_skew(result)
    elif result.experiment is not None:
        _show_experiment(result, result.experiment)
    else:
        _show_formula(result)
    total = sum(value or 0.0 for value in result.seconds.values())
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in result.seconds.items())
    show(f"\n{total:.0f} s ({parts}); report: {folder / 'report.html'}")


def explain_failure(run: Run) -> str | None:
    """A text on why a run did not end as its recipe expects; None if it did."""
    result = run.result
    if isinstance(result, CarryResult | LimiterResult | SkewResult):
        return None if result.as_expected else f"{result.verdict}, but {result.expected} was expected"
    return _explain_outcome(result) if isinstance(result, Discovery) and result.as_expected is False else None


def _show_reasons(reasons: Iterable[str], findings: Iterable[str] | None) -> None:
    """Print conditions with yes or NO, and findings; a refusal before any condition is printed as the error alone."""
    if conditions := [text.split(": ", 1) for text in reasons if text.startswith(("yes: ", "NO: "))]:
        show_pairs(conditions)
    if findings:
        show_pairs(("finding", text) for text in findings)


def _show_carry(result: CarryResult) -> None:
    kept = "" if result.kept is None else f"; formulas keep {result.kept:.0%} of the network's gain"
    show(f"{result.recipe}: {result.verdict}{kept}\n")
    show_pairs((name, f"= {text}") for name, text in result.coefficients.items())
    show(f"\nerror of one step at {result.carry[0].fourier:g} Fourier steps over its change, on unseen meshes\n")
    columns = ("cells", "field", "integrator", "best constants", "network", "formula", "1,000 steps")
    rows = [
        (
            f"{row.cells:,}",
            row.field,
            *(format_value(each, ".2e") for each in (row.midpoint, row.constants, row.network, row.formula)),
            "blow up" if row.blew_up else "bounded",
        )
        for row in result.carry
    ]
    show_table(columns, rows, right=(columns[0], *columns[2:6]))
    show()
    _show_reasons(result.reasons, result.findings)


def _explain_outcome(result: Discovery) -> str:
    failed = (text.removeprefix("NO: ") for text in result.reasons if not text.startswith("yes"))
    reason = next(failed, "no reason given")
    if result.verdict == "refused":
        return f"no formula was accepted: {reason}"
    if result.verdict == "approximation" and result.expected == "recovered":
        return f"the formula is an approximation, but a recovery was expected: {reason}"
    if result.scheme is None and result.verdict == "recovered":
        return "the formula is not a scheme of the recipe's equation"
    order = result.order_in_time
    return (
        f"the order in time is {f'{order:.2f}' if isinstance(order, float) else 'not known'}, and the recipe expects "
        "another"
    )


def _show_formula(result: Discovery) -> None:
    show(f"{result.recipe}: {headline(result)}\n")
    if result.messages and result.constants is not None:
        rows = [*result.messages.items(), *(result.outputs or {}).items()]
        show_pairs((name, f"= {'Σ ' if name in result.messages else ''}{text}") for name, text in rows)
        show()
        columns = ("constant", "in the network", "±", "by least loss", "±", "taken as")
        show_table(columns, [_constant_row(result, name) for name in result.constants])
        show()
    else:
        _show_candidates(result)
    _show_reasons(result.reasons, result.findings)
    if result.evaluation is not None and result.evaluation.meshes:
        _show_errors(result.evaluation)


def _show_candidates(result: Discovery) -> None:
    """Print which network was distilled and its most accurate candidates: what a run without a formula has to show."""
    if member := describe_member(result):
        show(f"distilled: network {member}, the one of least loss\n")
    fronts = shown_fronts(result)
    if not fronts:
        return
    labels, most = label_fronts(result), max(MOST_CANDIDATES // len(fronts), 1)
    rows = [
        (f"{front.kind} {labels[name]}", str(row.complexity), number(row.error, 2), round_decimals(row.formula, 6))
        for name, front in fronts.items()
        for row in front.rows[-most:]
    ]
    show_pairs([("candidate of the", "complexity", "error", "formula"), *rows])
    if more := sum(len(front.rows) for front in fronts.values()) - len(rows):
        show(f"… and {more} more in front.csv")
    for definition in define_labels(result):
        show(f"the update learns {definition}")


def headline(result: Discovery) -> str:
    """A text with the verdict and the share of the network's step that the formula does not explain."""
    if result.explained is None or result.explained.least is None:
        # Runs of older versions record only whether a formula was recovered.
        return "recovered" if result.recovered else "refused; no formula was accepted"
    unexplained = 1.0 - result.explained.least
    if result.verdict == "recovered":
        return f"recovered; the formula explains all but {unexplained:.1%} of the network's step at every Δt tried"
    kind = "an approximation" if result.verdict == "approximation" else "refused"
    return f"{kind}; {unexplained:.1%} of the network's step is unexplained"


def _constant_row(result: Discovery, name: str) -> tuple[str, ...]:
    values, spread = result.constants or {}, result.constants_uncertainty or {}
    if result.constants_fitted is not None:
        values, spread = result.constants_fitted.values, result.constants_fitted.uncertainty
    own = (result.limit or {}).get(name)
    cells = ["", ""] if own is None else [f"{own:.5g}", _format_uncertainty((result.limit_uncertainty or {}).get(name))]
    cells += [f"{values[name]:.6g}", _format_uncertainty(spread.get(name))]
    return name, *cells, (result.rational or {}).get(name, "")


def _format_uncertainty(value: float | None) -> str:
    return "undetermined" if value is None or not math.isfinite(value) else f"{value:.1e}"


def _show_errors(evaluation: Evaluation) -> None:
    show(f"\nagainst the first-order scheme on {evaluation.meshes} unseen meshes of about {evaluation.cells} cells\n")
    columns = ("", "one step, MSE", "worst cell", f"{evaluation.rollout} steps, MSE")
    rows = [
        (name, *(_format_error(value) for value in (each.one_step_mse, each.one_step_worst, each.rollout_mse)))
        for name, each in (("network", evaluation.network), ("formula", evaluation.formula))
        if each is not None
    ]
    show_table(columns, rows, right=columns[1:])


def _format_error(value: float | None) -> str:
    return "blows up" if value is None else f"{value:.1e}"


ARM_COLUMNS = {
    "train_mae": "training MAE",
    "ood_mse": "one-step MSE",
    "rollout_mse": "rollout MSE",
    "nonzeros": "non-zeros",
}


def show_arms(summary: Mapping[str, Mapping[str, ArmSummary]]) -> None:
    """Print median and quartiles over the seeds of every arm of every variant."""
    columns = ("variant", "arm", *ARM_COLUMNS.values(), "stuck")
    rows = [
        (variant, arm, *(_format_quartiles(arm_summary, name) for name in ARM_COLUMNS), str(arm_summary.stuck))
        for variant, arms in summary.items()
        for arm, arm_summary in arms.items()
    ]
    show_table(columns, rows, right=columns[2:])


def _format_quartiles(summary: ArmSummary, name: str) -> str:
    """Median and quartiles; non-zeros are counted."""
    quartiles, form = getattr(summary, name), ".0f" if name == "nonzeros" else ".2g"
    middle, low, high = (format_value(each, form) for each in (quartiles.median, quartiles.q1, quartiles.q3))
    return f"{middle} [{low}, {high}]"


def _show_experiment(result: Discovery, record: FluxRecord) -> None:
    """Print the flux, the reasons of the verdict, and the properties tested on the network."""
    error = "" if record.error is None else f"; error {record.error:.1e} on held-out fluxes"
    show(f"{result.recipe}: {result.verdict}{error}\n")
    if record.flux:
        show(f"F = {record.flux}\n")
    _show_reasons(result.reasons, result.findings)
    show()
    rows = [
        (
            row.name,
            *(format_value(value, ".1e") for value in (row.defect, row.limit)),
            "used" if row.used else "holds" if row.holds else "fails",
            row.statement,
        )
        for row in record.checks
    ]
    show_table(("property", "violation", "limit", "verdict", "meaning"), rows)
    show(f"\nsearched g in F = {record.form}")
    for without in () if result.ablations is None else result.ablations.found:
        show(f"{without.method}: {'none found' if without.error is None else f'error {without.error:.1e}'}")


def _show_skew(result: SkewResult) -> None:
    """Print the verdict with its reasons, the chosen coefficients, and errors relative to the corrected flux."""
    show(f"{result.recipe}: {result.verdict}\n")
    show_pairs(text.split(": ", 1) for text in result.reasons)
    errors = f"{result.network_error:.2%} for the network, {result.plain_error:.0%} for the two-point flux"
    show(f"\nerror of the flux on unseen meshes: {errors}\n")
    if result.laws:
        show_pairs((law.name, f"ψ₁ = {law.formula}") for law in result.laws)
        show(
            "\nover those of the corrected flux on held-out meshes: error of the worse kind of steady problems, "
            "stable step; order\n"
        )
        families = [row.family for row in result.laws[0].families]
        rows = [
            (
                law.name,
                *(f"{row.error_ratio:.2f}, {row.step_ratio:.2f}; {row.order:.2f}" for row in law.families),
                f"{law.coercivity:.2f}",
            )
            for law in result.laws
        ]
        show_table(("chosen for", *families, "coercivity"), rows)
        show()
    show_pairs(("finding", text) for text in result.findings)


def _show_limiter(result: LimiterResult) -> None:
    """Print the formula of a run, why it was accepted or refused, and its errors."""
    show(f"{result.recipe}: {result.verdict}\n\nφ = {result.formula}\n")
    _show_reasons(result.reasons, result.findings)
    first = result.limiters[0]
    columns = ("limiter", *(f"{n} steps" for n in first.fresh), *(f"Jiang–Shu, c = {c}" for c in first.jiang_shu))
    rows = [
        (
            row.name,
            *(format_value(value, ".3f") for value in row.fresh.values()),
            *(number(value, 3) for value in row.jiang_shu.values()),
        )
        for row in result.limiters
    ]
    show("\nerrors on fresh profiles over CFL-superbee's; mean |error| on the wave\n")
    show_table(columns, rows, right=columns[1:])
