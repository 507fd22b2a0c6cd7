"""What `fluxforge reproduce` shows of its results."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import typer

from fluxforge.cli._output import say, show, show_json, show_pairs, show_table
from fluxforge.cli._progress import counted, question_bar
from fluxforge.errors import InputError
from fluxforge.report import controls_table, rates_table
from fluxforge.reproduction import (
    Comparison,
    Moved,
    PartComparison,
    Reproduction,
    compare,
    read_documents,
    reproduce,
    write_reproduction,
)

WORDS = {"train_mae": "training MAE", "ood_mse": "one-step MSE", "rollout_mse": "50-step MSE", "nonzeros": "non-zeros"}
# Numbers that moved, of each part, that are shown.
SHOWN = 8


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    names: tuple[str, ...]
    preset: str
    changes: Mapping[str, Any]
    folder: Path
    again: bool
    check: Path | None
    as_json: bool


def run(asked: Asked) -> None:
    """Each part in turn; its table and verdicts, or its document; then the page of all that is in the folder."""
    kept = {} if asked.check is None else read_documents(asked.check)
    if asked.check is not None and not kept:
        raise InputError(f"{asked.check}: holds no results to compare with")
    results = {name: _part(name, asked) for name in asked.names}
    whole = write_reproduction(asked.folder, command=f"fluxforge reproduce {' '.join(asked.names)}")
    compared = None if asked.check is None else compare(read_documents(asked.folder), kept)
    if asked.as_json:
        show_json(
            results[asked.names[0]] if len(results) == 1 and compared is None else _together(results, whole, compared)
        )
    else:
        _shown(results, whole, compared, asked.folder)
    if compared is not None and compared.verdicts:
        raise typer.Exit(1)


def _part(name: str, asked: Asked) -> dict[str, Any]:
    with question_bar(name, quiet=asked.as_json) as tell:
        return reproduce(
            name,
            preset=asked.preset,
            changes=asked.changes,
            folder=asked.folder,
            again=asked.again,
            tell=counted(tell),
            warn=lambda text: say("warning", text),
        )


def _together(results: Mapping[str, Any], whole: Reproduction, compared: Comparison | None) -> dict[str, Any]:
    document = {"parts": results, **msgspec.to_builtins(whole)}
    return document if compared is None else document | {"check": compared.document()}


def _shown(results: Mapping[str, Any], whole: Reproduction, compared: Comparison | None, folder: Path) -> None:
    for name, result in results.items():
        show(f"\n{name}\n")
        _tables(result)
        _claims(result)
        show(f"\nfigures and data: {folder / name}")
    if len(results) > 1:
        show("\nthe paper's claims\n")
        columns = ("section", "claim", "verdict")
        show_table(columns, [(row.section, _short(row.text), row.verdict) for row in whole.claims])
    if compared is not None:
        _show_compared(compared)
    counts = ", ".join(f"{verdict}: {count}" for verdict, count in whole.counts.items() if count)
    show(f"\nclaims of the paper: {counts}\npage: {whole.page}")


def _short(text: str) -> str:
    return textwrap.shorten(text, 62, placeholder=" …")


def _show_compared(compared: Comparison) -> None:
    """Verdicts and numbers beside kept ones: what moved, beyond what, and how many numbers were compared how."""
    show("\nbeside the results that were kept\n")
    for row in compared.verdicts:
        show(f"verdict changed: “{row.text}”: {row.kept} → {row.fresh}")
    if not compared.verdicts:
        show("no verdict differs")
    if compared.unjudged:
        show(f"judged by one side only: {', '.join(compared.unjudged)}")
    for part in compared.parts:
        _show_part(part)
    for name in compared.only_kept:
        show(f"{name}: kept, and not in this folder")


def _show_part(part: PartComparison) -> None:
    if not part.same_preset:
        presets = f"preset {part.preset_fresh} here, {part.preset_kept} kept"
        show(f"{part.part}: {presets}: verdicts compared, numbers not (they are at equal presets)")
        return
    show(f"{part.part}: {len(part.moved)} of {part.compared} numbers moved")
    show(f"    {', '.join(f'{kind}: {count}' for kind, count in part.counts.items() if count)}")
    if part.digits is not None:
        show(f"    kept to {part.digits} digits: deterministic numbers are compared to half a unit of the last")
    for each in part.moved[:SHOWN]:
        show(f"    {each.where}: {_number(each.kept)} → {_number(each.fresh)}, {_beyond(each)}")
    if len(part.moved) > SHOWN:
        show(f"    and {len(part.moved) - SHOWN} more (all with --json)")


def _beyond(moved: Moved) -> str:
    """What a number that moved may differ by."""
    if moved.fresh is None:
        return f"{moved.kind}"
    if moved.chance is not None:
        return f"{moved.kind}: such counts at one rate have a chance of {moved.chance:.1g}"
    return f"{moved.kind}: off by {abs(moved.fresh - moved.kept):.2g}, allowed {moved.allowed:.2g}"


def _number(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.10g}"


def _tables(result: Mapping[str, Any]) -> None:
    if "recipes" in result:
        _rates(result)
    if result.get("experiment") == "controls":
        table = controls_table(result)
        show_table(table.columns, table.rows, right=("explained", "seconds"))
    if "recovery" in result:
        _recovery(result)
    if "discovered" in result:
        _residuals(result)
    if "summary" not in result:
        return
    show_arms(result["summary"])
    if "reduced" in result:
        reduced = result["reduced"]
        text = f"{reduced['reached']} of {reduced['of']} sparse networks reach {reduced['lemma_nonzeros']} non-zeros"
        show(f"\nmerged and pruned: {text}, exact on unseen meshes")


def _rates(result: Mapping[str, Any]) -> None:
    """How many seeds of every recipe ended in which verdict; those that did not as expected, one by one."""
    table = rates_table(result)
    show_table(table.columns, table.rows, right=table.columns[2:])
    for name, found in result["recipes"].items():
        for row in found["rows"]:
            if row["verdict"] != found["expected"]:
                show(f"{row['verdict']}: {name}, seed {row['seed']}: {row['reason']}")


def _recovery(result: Mapping[str, Any]) -> None:
    """How often a formula was found again; failures one by one."""
    columns = ("engine", "α", "recovered", "worst constant", "seconds, median")
    rows = [
        (
            row["engine"],
            f"{row['diffusivity']:g}",
            f"{row['recovered']} of {row['of']}",
            "" if row["worst_constant"] is None else f"{row['worst_constant']:.1e}",
            f"{row['median_seconds']:.0f}",
        )
        for row in result["recovery"]
    ]
    show_table(columns, rows, right=columns[1:])
    for row in result["rows"]:
        if not row["recovered"]:
            show(f"not recovered: {row['engine']}, seed {row['seed']}, α = {row['diffusivity']:g}: {row['reason']}")
    for name, hint in result["left_out"].items():
        show(f"left out: {name} ({hint})")


def _residuals(result: Mapping[str, Any]) -> None:
    """Mean residuals on unseen meshes, and how far below the midpoint rule's the network's is."""
    columns = ("network", "residual", "euler", "midpoint", "below midpoint")
    rows = []
    for name, found in result["networks"].items():
        own = found["residual"]
        shown = (f"{own[key]:.2e}" for key in ("network", "euler", "midpoint"))
        rows.append((name, *shown, f"{own['midpoint'] / own['network']:.1f}×"))
    show_table(columns, rows, right=columns[1:])
    for name, found in result["discovered"].items():
        show(f"\n{name}: {'recovered' if found['recovered'] else 'not recovered'}")
        off = found.get("constants_uncertainty", {})
        show_pairs((key, f"{value:.6f} ± {off[key]:.0e}") for key, value in found.get("constants", {}).items())


def show_arms(summary: Mapping[str, Any]) -> None:
    """Median and quartiles over the seeds of every arm of every variant."""
    columns = ("variant", "arm", *WORDS.values(), "stuck")
    rows = [
        (variant, arm, *(_spread(found[name]) for name in WORDS), str(found["stuck"]))
        for variant, arms in summary.items()
        for arm, found in arms.items()
    ]
    show_table(columns, rows, right=columns[2:])


def _spread(found: Mapping[str, float]) -> str:
    return f"{found['median']:.2g} [{found['q1']:.2g}, {found['q3']:.2g}]"


def _claims(result: Mapping[str, Any]) -> None:
    show("\nwhat the paper says, and what came out\n")
    for claim in result["claims"]:
        condition = f"{claim['condition'].capitalize()}. " if claim.get("condition") else ""
        show_pairs([(claim["verdict"], f"“{claim['text']}”"), ("", f"{condition}{claim['evidence']}"), ("", "")])
