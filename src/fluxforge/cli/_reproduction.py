"""What `fluxforge reproduce` shows of its results."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fluxforge.cli._output import say, show, show_json, show_pairs, show_table
from fluxforge.cli._progress import counted, question_bar
from fluxforge.experiments import reproduce

WORDS = {"train_mae": "training MAE", "ood_mse": "one-step MSE", "rollout_mse": "50-step MSE", "nonzeros": "non-zeros"}


def run(names: tuple[str, ...], preset: str, changes: Mapping[str, Any], folder: Path, as_json: bool) -> None:
    """Each part in turn; its table and verdicts, or its document."""
    results = {}
    for name in names:
        with question_bar(name, quiet=as_json) as tell:
            results[name] = reproduce(
                name,
                preset=preset,
                changes=changes,
                folder=folder,
                tell=counted(tell),
                warn=lambda text: say("warning", text),
            )
    if as_json:
        show_json(results[names[0]] if len(names) == 1 else results)
        return
    for name, result in results.items():
        show(f"\n{name}\n")
        _tables(result)
        _claims(result)
        show(f"\nfigures and data: {folder / name}")


def _tables(result: Mapping[str, Any]) -> None:
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
        show_pairs([(claim["verdict"], f"“{claim['text']}”"), ("", claim["evidence"]), ("", "")])
