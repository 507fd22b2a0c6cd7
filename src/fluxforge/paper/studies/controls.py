"""Other laws and fake networks, put through the same search and the same judge as every discovery."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fluxforge import recipe
from fluxforge.data import source
from fluxforge.gnn import Network
from fluxforge.paper.studies._claim import Claim, Verdict
from fluxforge.paper.studies._decoys import DECOYS, LAWS, Decoy
from fluxforge.paper.studies._same_law import departure, is_law
from fluxforge.pipeline import (
    Judged,
    Progress,
    TrainedMember,
    distil_network,
    environment,
    finite,
    judge_formula,
    run_folder,
    silent,
)
from fluxforge.train import train

__all__ = ["Config", "check", "run"]

NAME = "controls"
Warn = Callable[[str], None]
FOOLED, MISSED, OK = "FOOLED", "missed", "ok"
# Smaller than the shipped recipes: a network has to be good enough for a recovery, not better.
QUICK: Mapping[str, Mapping[str, Any]] = {
    "first-order": {
        "network.width": 32,
        "training.steps": 3000,
        "training.batch": 64,
        "training.checkpoint_every": 3000,
        "search.restarts": 2,
        "search.evaluations": 7_200,
    },
    "midpoint": {
        "network.standardise": False,
        "data.meshes": 6,
        "data.cells": (24, 40),
        "data.engine": "builtin",
        "evaluation.engine": "builtin",
    },
}
PAPER: Mapping[str, Mapping[str, Any]] = {
    "first-order": {},
    "midpoint": {"network.standardise": False, "data.meshes": 24},
}
SIZES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {"quick": QUICK, "paper": PAPER}


@dataclass(frozen=True)
class Config:
    """Which decoys, at which size: of `quick` networks, or of the shipped recipes with `paper`."""

    preset: str = "quick"
    changes: Mapping[str, Any] = field(default_factory=dict)
    decoys: tuple[str, ...] = tuple(DECOYS)


def run(
    config: Config, folder: Path | None = None, tell: Progress = silent, warn: Warn = lambda _: None
) -> dict[str, Any]:
    """Every decoy in a run folder of its own, named after it; those that are finished there are collected."""
    if folder is None:
        with TemporaryDirectory() as scratch:
            return run(config, Path(scratch), tell, warn)
    rows = []
    for done, name in enumerate(config.decoys):
        tell(name, done, len(config.decoys))
        rows.append(_row(DECOYS[name], config, folder, tell, warn))
    result = {"experiment": NAME, "preset": config.preset, "decoys": len(rows), "rows": rows}
    result["environment"] = environment()
    result["counts"] = {each: sum(row["outcome"] == each for row in rows) for each in (OK, FOOLED, MISSED)}
    return result | {"claims": [claim.document() for claim in check(result)]}


def outcome_of(decoy: Decoy, verdict: str, is_own_law: bool) -> str:
    """FOOLED by a recovery that must not be, or of another law; missed where a true law is not recovered."""
    if verdict == "recovered":
        return OK if "recovered" in decoy.allowed and is_own_law else FOOLED
    return OK if verdict in decoy.allowed else MISSED


def check(result: Mapping[str, Any]) -> list[Claim]:
    """The one claim of this part, which is ours: no wrong law and no fake network is taken for the scheme."""
    rows = result["rows"]
    fooled = [row["name"] for row in rows if row["outcome"] == FOOLED]
    missed = [row["name"] for row in rows if row["outcome"] == MISSED]
    verdict: Verdict = "does not hold" if fooled else "holds under a condition" if missed else "holds"
    laws = sum(row["kind"] == "law" for row in rows)
    evidence = f"{laws} laws and {len(rows) - laws} networks: {len(rows) - len(fooled) - len(missed)} as they must be"
    evidence += (
        f"; wrongly recovered: {', '.join(fooled) or 'none'}; true but not recovered: {', '.join(missed) or 'none'}."
    )
    condition = f"with {', '.join(missed)} not recovered" if missed and not fooled else ""
    text = "no wrong law or fake network is taken for the scheme, and what is true is recovered"
    return [Claim("controls-not-fooled", text, verdict, evidence, condition)]


def spec_of(decoy: Decoy, config: Config) -> recipe.Recipe:
    """The decoy's recipe, named after it; nothing is measured on meshes, and no certificate is made."""
    size = SIZES[config.preset][decoy.recipe]
    changes = {key: value for key, value in config.changes.items() if key == "training.steps"}
    return recipe.override(
        recipe.load(decoy.recipe), {"evaluation.meshes": 0, **size, **changes, **decoy.changes, "seeds": 1}
    )


def _row(decoy: Decoy, config: Config, folder: Path, tell: Progress, warn: Warn) -> dict[str, Any]:
    """What became of one decoy: collected if it was finished as it stands, or run."""
    spec = spec_of(decoy, config)
    with run_folder(folder / decoy.name, spec, warn=warn) as held:
        done = held.finished(NAME)
        if done is None or done["what"] != decoy.what:
            began = time.perf_counter()

            def told(what: str, k: int, of: int) -> None:
                tell(f"{decoy.name}: {what}", k, of)

            if decoy.make is None:
                network = train(spec, source(spec), folder=held).member(0)
            else:
                network = decoy.make(spec, lambda: _heat(config, folder, warn))
            judged = judge_formula(distil_network(TrainedMember(network), spec, held, told), spec, told)
            done = _told(decoy, spec, judged) | {"seconds": time.perf_counter() - began}
            held.finish(NAME, done)
    # What a decoy may get is judged anew, so that a changed expectation needs no training.
    return done | {
        "allowed": [each for each in ("recovered", "approximation", "refused") if each in decoy.allowed],
        "outcome": outcome_of(decoy, done["verdict"], done["own_law"]),
    }


def _heat(config: Config, folder: Path, warn: Warn) -> Network:
    """The network of the heat law: that of the decoy `heat`, trained already or now."""
    spec = spec_of(DECOYS["heat"], config)
    with run_folder(folder / "heat", spec, warn=warn) as held:
        return train(spec, source(spec), folder=held).member(0)


def _told(decoy: Decoy, spec: recipe.Recipe, judged: Judged) -> dict[str, Any]:
    """A row of the table: verdict, explained share, formula, and whether that is the law of the data."""
    formula, constants = judged.formula, judged.constants
    own: dict[str, Any] = finite(
        {
            "name": decoy.name,
            "kind": "law" if decoy in LAWS else "network",
            "what": decoy.what,
            "verdict": judged.verdict,
            "explained": None if constants is None else constants.explained.least,
            "messages": {} if formula is None else formula.messages,
            "outputs": {} if formula is None else formula.outputs,
            "limit": {} if constants is None else dict(constants.limit),
            "own_law": formula is not None and is_law(formula.stages, spec),
            "departure": None if formula is None else departure(formula.stages, spec),
            "reason": next((text for text in judged.reasons if not text.startswith("yes")), None),
        }
    )
    return own
