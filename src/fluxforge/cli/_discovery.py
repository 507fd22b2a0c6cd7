"""What `fluxforge discover` runs, and how it shows the result."""

import math
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from fluxforge import recipe
from fluxforge.cli._experiment import show_experiment
from fluxforge.cli._limiter import show_limiter
from fluxforge.cli._output import say, show, show_json, show_pairs, show_table
from fluxforge.cli._progress import TerminatedError, count_done, question_bar
from fluxforge.cli._skew import show_skew
from fluxforge.errors import StorageError
from fluxforge.pipeline import Discovery, Evaluation, Generalisation, Progress, Run, discover, free_folder, resume
from fluxforge.run.carry import CarryResult
from fluxforge.run.limiter import LimiterResult
from fluxforge.run.result import ArmSummary, Quartiles
from fluxforge.run.skew import SkewResult


def start_run(name: str, output: Path | None, preset: str | None, changes: Mapping[str, Any], as_json: bool) -> None:
    """Start a new run and show its result."""
    spec = recipe.load(name, preset=preset)
    spec = recipe.override(spec, changes) if changes else spec
    folder = output or free_folder(spec)
    _run(lambda tell: discover(spec, folder, command=_command(), tell=tell, warn=_warn), spec.name, folder, as_json)


def _command() -> str:
    return shlex.join(["fluxforge", *sys.argv[1:]])


def resume_run(folder: Path, as_json: bool) -> None:
    """Continue a run and show its result."""
    _run(lambda tell: resume(folder, tell=tell, warn=_warn), folder.name, folder, as_json)


def _warn(text: str) -> None:
    say("warning", text)


def _run(work: Callable[[Progress], Run], name: str, folder: Path, as_json: bool) -> None:
    """Run `work` with progress and print its result; exit code 1 if it is not what the recipe expects."""
    try:
        with question_bar(name, quiet=as_json) as tell:
            run = work(count_done(tell))
    except (KeyboardInterrupt, TerminatedError):
        if (folder / "run.json").exists():
            say("continue with", _resume_command(folder), style="bold")
        raise
    except StorageError as error:
        if not (folder / "run.json").exists():
            raise
        raise StorageError(f"{error}; after fixing this, continue with: {_resume_command(folder)}") from error
    result = run.result
    if isinstance(result, Discovery) and result.ended_by_clock:
        limit = "the time limit search.seconds stopped the search for"
        _warn(f"{limit} {', '.join(result.ended_by_clock)}: a faster or slower machine may find other formulas")
    if as_json:
        show_json(run.document)
    elif isinstance(result, Generalisation):
        show_arms({"this run": result.summary})
        show(f"\nresults, figures and checkpoints: {folder}")
    elif isinstance(result, CarryResult):
        _show_carry(result, folder)
    elif isinstance(result, LimiterResult):
        show_limiter(result, folder)
    elif isinstance(result, SkewResult):
        show_skew(result, folder)
    elif result.experiment is not None:
        show_experiment(result, folder)
    else:
        _show_formula(result, folder)
    if isinstance(result, CarryResult | LimiterResult | SkewResult) and not result.as_expected:
        say("error", f"{result.verdict}, but {result.expected} was expected; see {folder}", style="bold red")
        raise typer.Exit(1)
    if isinstance(result, Discovery) and result.as_expected is False:
        say("error", f"{_explain_outcome(result)}; see {folder}", style="bold red")
        raise typer.Exit(1)


def _show_carry(result: CarryResult, folder: Path) -> None:
    kept = "" if result.kept is None else f"; formulas keep {result.kept:.0%} of the network's gain"
    show(f"{result.recipe}: {result.verdict}{kept}\n")
    show_pairs((name, f"= {text}") for name, text in result.coefficients.items())
    show(f"\nerror of one step at {result.carry[0].fourier:g} Fourier steps over its change, on unseen meshes\n")
    columns = ("cells", "field", "integrator", "best constants", "network", "formula", "1,000 steps")
    rows = [
        (
            f"{row.cells:,}",
            row.field,
            *("-" if e is None else f"{e:.2e}" for e in (row.midpoint, row.constants, row.network, row.formula)),
            "blow up" if row.blew_up else "bounded",
        )
        for row in result.carry
    ]
    show_table(columns, rows, right=(columns[0], *columns[2:6]))
    show()
    show_pairs(text.split(": ", 1) for text in result.reasons)
    show_pairs(("finding", text) for text in result.findings)
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in result.seconds.items())
    show(f"\n{sum(result.seconds.values()):.0f} s ({parts}); report: {folder / 'report.html'}")


def _resume_command(folder: Path) -> str:
    return f"fluxforge discover --resume {shlex.quote(str(folder))}"


def _explain_outcome(result: Discovery) -> str:
    if result.verdict == "refused":
        return f"no formula was accepted: {_first_reason(result)}"
    if result.verdict == "approximation" and result.expected == "recovered":
        return f"the formula is an approximation, but a recovery was expected: {_first_reason(result)}"
    if result.scheme is None and result.verdict == "recovered":
        return "the formula is no scheme of the recipe's equation"
    order = result.order_in_time
    return f"the recipe expects an order in time other than {f'{order:.2f}' if isinstance(order, float) else 'none'}"


def _first_reason(result: Discovery) -> str:
    return next((text.removeprefix("NO: ") for text in result.reasons if not text.startswith("yes")), "no reason given")


def _show_formula(result: Discovery, folder: Path) -> None:
    show(f"{result.recipe}: {headline(result)}\n")
    if result.messages and result.constants is not None:
        rows = [*result.messages.items(), *(result.outputs or {}).items()]
        show_pairs((name, f"= {'Σ ' if name in result.messages else ''}{text}") for name, text in rows)
        show()
        columns = ("constant", "in the network", "±", "by least loss", "±", "taken as")
        show_table(columns, [_constant_row(result, name) for name in result.constants])
    else:
        for name, front in (result.fronts or {}).items():
            show_pairs(
                (f"{name}, {row.complexity}", f"{_format_error(row.error)}  {row.formula}") for row in front.rows
            )
    show()
    show_pairs(text.split(": ", 1) for text in result.reasons if ": " in text)
    show_pairs(("finding", text) for text in result.findings or ())
    if result.evaluation is not None and result.evaluation.meshes:
        _show_errors(result.evaluation)
    total = sum(value or 0.0 for value in result.seconds.values())
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in result.seconds.items())
    show(f"\n{total:.0f} s ({parts}); report: {folder / 'report.html'}")


def headline(result: Discovery) -> str:
    """The verdict, and the share of the network's step that the formula explains."""
    if result.explained is None or result.explained.least is None:
        # Runs finished before there were three verdicts have no more than this.
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


def _show_errors(found: Evaluation) -> None:
    show(f"\nagainst the first-order scheme on {found.meshes} unseen meshes of about {found.cells} cells\n")
    columns = ("", "one step, MSE", "worst cell", f"{found.rollout} steps, MSE")
    rows = [
        (name, *(_format_error(value) for value in (each.one_step_mse, each.one_step_worst, each.rollout_mse)))
        for name, each in (("network", found.network), ("formula", found.formula))
        if each is not None
    ]
    show_table(columns, rows, right=columns[1:])


def _format_error(value: float | None) -> str:
    return "blows up" if value is None else f"{value:.1e}"


ARM_COLUMNS = {
    "train_mae": "training MAE",
    "ood_mse": "one-step MSE",
    "rollout_mse": "50-step MSE",
    "nonzeros": "non-zeros",
}


def show_arms(summary: Mapping[str, Mapping[str, ArmSummary]]) -> None:
    """Print median and quartiles over the seeds of every arm of every variant."""
    columns = ("variant", "arm", *ARM_COLUMNS.values(), "stuck")
    rows = [
        (variant, arm, *(_format_quartiles(getattr(found, name)) for name in ARM_COLUMNS), str(found.stuck))
        for variant, arms in summary.items()
        for arm, found in arms.items()
    ]
    show_table(columns, rows, right=columns[2:])


def _format_quartiles(found: Quartiles) -> str:
    return f"{found.median:.2g} [{found.q1:.2g}, {found.q3:.2g}]"
