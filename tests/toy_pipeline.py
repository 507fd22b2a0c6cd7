"""Discoveries and parts of the paper whose numerical work takes no time: what they write, and when, is the real thing.

`install` replaces training, searches, fits and certificates by constants, everywhere they are used. `reached` is called
with the name of each stage, so that a fault can strike there.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import sympy as sp
from msgspec import structs

from fluxforge import recipe
from fluxforge._files import write_document, write_text
from fluxforge.certify import Certificate
from fluxforge.distil import Ablations, Candidate, Fitted, Free, Front, Reading, Sampled, tabulate
from fluxforge.gnn import Network
from fluxforge.paper import Reproduction, _part, _run
from fluxforge.paper.studies import _records, controls, rates, symbolic
from fluxforge.pipeline import (
    Evaluation,
    Formula,
    _discover,
    _distillation,
    _folder,
    _judgement,
    _report,
)
from fluxforge.pipeline._formula import NetworkConstants
from fluxforge.run import RunFolder
from fluxforge.run.result import Discovery
from fluxforge.scheme import Scheme, find, symbol

STEPS = 6
NETWORK = object.__new__(Network)  # nobody asks it anything
STAGES = ("train 3", "search z1", "search T_new", "choose", "judge", "certify", "ablate", "report")
# Told of every stage that is reached.
hooks: list[Callable[[str], None]] = []
_X = np.random.default_rng(0).uniform(1.0, 2.0, (50, 2))
TABLE = tabulate(("A", "delta"), _X, _X[:, 0] / _X[:, 1])


def reached(stage: str) -> None:
    for hook in hooks:
        hook(stage)


def train(spec: recipe.Recipe, batches: object, *, folder: RunFolder | None = None, tell: Any = None) -> Any:
    """Six steps: a record each, a checkpoint every other one; from the last checkpoint, if there is one."""
    state = {"w": np.zeros(4)}
    if folder is not None:
        checkpoint = folder.checkpoints.latest(state, fingerprint=recipe.fingerprint(spec))
        step, state = (0, state) if checkpoint is None else checkpoint
        folder.metrics.truncate(step)
        while step < STEPS:
            step, state = step + 1, {"w": state["w"] + 0.1}
            reached(f"train {step}")
            folder.metrics.append({"step": step, "supervised": [1.0 / step], "skipped": [0]})
            if step % 2 == 0:
                folder.metrics.sync()
                folder.checkpoints.save(step, state, fingerprint=recipe.fingerprint(spec))
            if tell is not None:
                tell(step, STEPS, {"supervised": 1.0 / step})
    return SimpleNamespace(network=None, member=lambda k: NETWORK, seeds=1, skipped=(0,), failed=(False,))


def _search(each: Sampled, spec: recipe.Recipe) -> Front:
    reached(f"search {each.name}")
    return Front((Candidate(symbol("A") / symbol("delta"), 3, 0.5), Candidate(sp.Float(0.25) * symbol("A"), 2, 0.7)))


def _formula(*_: object, **__: object) -> Formula:
    reached("choose")
    values = {"c1": 1.0}
    return Formula(Free(find("euler").stages, values), Fitted(values, {"c1": 0.0}, 0.0, {}, 0.0, exact=True))


def _read(network: object, formula: Formula, spec: recipe.Recipe) -> NetworkConstants:
    reached("judge")
    one, none = {"c1": 1.0}, {"c1": 0.0}
    reading = Reading(0.1, one, none, none, one, none, explained=1.0, explained_by_least=1.0, loss=0.0, exact=True)
    return NetworkConstants((reading,), one, none)


def _verify(scheme: Scheme, tell: object) -> Certificate:
    reached("certify")
    return Certificate(scheme.name, True, (), (), None, None, None, None, {}, {}, None, None, None, ())


def _ablate(spec: recipe.Recipe) -> Ablations:
    reached("ablate")
    return Ablations((), 0.0, "a toy has none")


def _write_report(result: Discovery, folder: Path, *, metrics: Any, **_: object) -> list[Path]:
    for name in ("report.html", "front.csv", "loss.png"):
        reached("report" if name == "front.csv" else "figures")
        write_text(folder / name, f"{name} of {result.recipe}, {len(metrics)} records\n")
    return [folder / name for name in ("report.html", "front.csv", "loss.png")]


def follow_step(config: Any, theta: float, folder: Path, tell: Any) -> symbolic.AgainstStep:
    symbolic.train_in_folder(symbolic.load_spec("first-order-pinn", config), folder / f"residual-{theta:g}", tell)
    constants = {"a1": 1.0, "c1": 1.0}
    row = symbolic.StepConstants(step=0.1, constants=constants, loss=0.0, alone=1.0)
    return symbolic.AgainstStep([row], constants, constants)


def _page(folder: Path, *, command: str = "") -> Reproduction:
    write_document(folder / "claims.json", "claims", 1, {"counts": {}, "claims": []})
    return Reproduction({}, [], "index.html")


def _parts() -> dict[str, Any]:
    """Three real parts, with few and small runs."""
    small: dict[str, tuple[ModuleType, dict[str, Any]]] = {
        "rates": (rates, {"recipes": ("first-order", "first-order-pinn"), "seeds": 1}),
        "controls": (controls, {"decoys": ("heat", "alpha-1.04")}),
        "symbolic": (symbolic, {"diffusivities": (0.3,), "seeds": 1, "thetas": (0.0,)}),
    }
    parts = {}
    for name, (module, own) in small.items():
        own_config = partial(module.Config, **own)
        shape = SimpleNamespace(Config=own_config, Result=module.Result, run=module.run, judge=module.judge)
        draw = dict.fromkeys(_run.PARTS[name].draw, lambda _: None)
        parts[name] = structs.replace(_run.PARTS[name], module=shape, draw=draw)
    return parts


def install(patch: Callable[[Any, str, Any], None]) -> None:
    """Replace the work; `patch` is `setattr`, or a monkeypatch's."""
    versions = {"python": "toy", "platform": "toy"}
    for module in (_folder, _report, _part, _records, controls):
        patch(module, "environment", lambda: versions)
    for module in (_distillation, rates, controls, symbolic):
        patch(module, "train", train)
        patch(module, "source", lambda *_, **__: None)
    patch(_distillation, "choose_member", lambda *_: 0)
    patch(_distillation, "measure_network_loss", lambda *_: 1.0)
    patch(_judgement, "read_network", _read)
    patch(_judgement, "condition_on_law", lambda *_: None)
    patch(_judgement, "compare_stencils", lambda *_: None)
    patch(_judgement, "measure_errors", lambda *_: Evaluation(meshes=0))
    tables = [Sampled("z1", "message", 0, TABLE, ()), Sampled("T_new", "update", 0, TABLE, ())]
    patch(_distillation, "sample_modules", lambda *_: tables)
    patch(_distillation, "search_module", _search)
    patch(_distillation, "compose_formula", _formula)
    patch(_distillation, "read_formula", _formula)
    for module in (_judgement, _discover):
        patch(module, "verify_scheme", _verify)
    patch(_judgement, "measure_unrounded_order", lambda *_: None)
    patch(_judgement, "matching_scheme", lambda *_: "euler")
    patch(_judgement, "is_expected", lambda *_: True)
    patch(_discover, "ablate", _ablate)
    patch(_report, "draw_fields", lambda *_: {})
    patch(_report, "write_discovery", _write_report)
    patch(rates, "measure_residual", lambda *_: None)
    patch(controls, "is_law", lambda *_: True)
    patch(controls, "measure_departure", lambda *_: None)
    patch(symbolic, "follow_step", follow_step)
    patch(_run, "PARTS", _parts())
    patch(_part, "save_figure", lambda figure, path: write_text(path, "drawn\n"))
    from fluxforge.cli import _reproduction

    patch(_reproduction, "PARTS", _run.PARTS)
    patch(_reproduction, "write_reproduction", _page)
