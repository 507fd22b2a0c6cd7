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
    if "summary" not in result:
        return
    show_arms(result["summary"])
    if "reduced" in result:
        reduced = result["reduced"]
        text = f"{reduced['reached']} of {reduced['of']} sparse networks reach {reduced['lemma_nonzeros']} non-zeros"
        show(f"\nmerged and pruned: {text}, exact on unseen meshes")


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
