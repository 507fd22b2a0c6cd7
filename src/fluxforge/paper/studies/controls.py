"""Other laws and fake networks are distilled and judged like discoveries: none may be recovered as the scheme."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import sympy as sp
from msgspec import Struct, convert
from msgspec.structs import asdict

from fluxforge import recipe
from fluxforge._machine import environment
from fluxforge.data._source import source
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._network import Network
from fluxforge.paper.studies._decoys import DECOYS, LAWS, Decoy
from fluxforge.paper.studies._records import OUTCOMES, Claim, StudyConfig, find_objection, to_verdict
from fluxforge.pipeline._distillation import distil_network
from fluxforge.pipeline._folder import run_folder
from fluxforge.pipeline._formula import Judged, TrainedMember
from fluxforge.pipeline._judgement import judge_formula
from fluxforge.recipe._equation import exchange_law
from fluxforge.run._progress import Progress, Warn, prefix_progress, silent
from fluxforge.run.result import to_document
from fluxforge.scheme._integrate import semi_discrete
from fluxforge.scheme._scheme import Stage
from fluxforge.train._train import train

NAME = "controls"
FOOLED, MISSED, OK = "FOOLED", "missed", "ok"
# Changes of the shipped recipes by preset: smaller networks and data that are just good enough for a recovery.
SIZES: Mapping[str, Mapping[str, recipe.Changes]] = {
    "quick": {
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
    },
    "paper": {
        "first-order": {},
        "midpoint": {"network.standardise": False, "data.meshes": 24},
    },
}


class DecoyRecord(Struct, frozen=True):
    """The outcome of a decoy: its verdict, the share explained, the formula, and whether it is the law of the data.

    `departure` is the largest relative difference of a coefficient from the law's; `reason` is the first failed
    condition of a recovery.
    """

    name: str
    kind: str
    what: str
    verdict: str
    explained: float | None
    messages: dict[str, str]
    outputs: dict[str, str]
    limit: dict[str, float | None]
    own_law: bool
    departure: float | None
    reason: str | None
    seconds: float


class Row(DecoyRecord, frozen=True):
    """A decoy with the allowed verdicts, and the outcome: ok, FOOLED or missed."""

    allowed: list[str]
    outcome: str


class Result(Struct, frozen=True):
    """The result of the study; `counts` are the numbers of decoys by outcome."""

    experiment: str
    preset: str
    decoys: int
    rows: list[Row]
    environment: dict[str, str]
    counts: dict[str, int]


@dataclass(frozen=True)
class Config(StudyConfig):
    """The decoys to run. With the preset `quick` networks are small, with `paper` as in the shipped recipes."""

    decoys: tuple[str, ...] = tuple(DECOYS)


def run(config: Config, folder: Path, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Run every decoy in a run folder of its own, named after it; finished ones are read."""
    rows = []
    for done, name in enumerate(config.decoys):
        tell(name, done, len(config.decoys))
        rows.append(run_decoy(DECOYS[name], config, folder, tell, warn))
    counts = {each: sum(row.outcome == each for row in rows) for each in (OK, FOOLED, MISSED)}
    return Result(NAME, config.preset, len(rows), rows, environment(), counts)


def judge_outcome(decoy: Decoy, verdict: str, is_own_law: bool) -> str:
    """FOOLED by a recovery that is not allowed, or of another law; missed if a true law is not recovered; else ok."""
    if verdict == "recovered":
        return OK if "recovered" in decoy.allowed and is_own_law else FOOLED
    return OK if verdict in decoy.allowed else MISSED


def judge(result: Result) -> list[Claim]:
    """The claim of this part, which is not one of the paper: no wrong law or fake network is taken for the scheme."""
    rows = result.rows
    fooled = [row.name for row in rows if row.outcome == FOOLED]
    missed = [row.name for row in rows if row.outcome == MISSED]
    laws = sum(row.kind == "law" for row in rows)
    evidence = (
        f"{laws} laws and {len(rows) - laws} networks: {len(rows) - len(fooled) - len(missed)} with the right outcome"
    )
    evidence += (
        f"; wrongly recovered: {', '.join(fooled) or 'none'}; true but not recovered: {', '.join(missed) or 'none'}."
    )
    condition = f"with {', '.join(missed)} not recovered" if missed and not fooled else ""
    text = "no wrong law or fake network is recovered as the scheme, and true ones are recovered"
    return [Claim("controls-not-fooled", text, to_verdict(not fooled and not missed, not fooled), evidence, condition)]


def make_recipe(decoy: Decoy, config: Config) -> recipe.Recipe:
    """The recipe of a decoy at the size of the preset, with one seed and without evaluation on meshes."""
    size = SIZES[config.preset][decoy.recipe]
    changes = {key: value for key, value in config.changes.items() if key == "training.steps"}
    return recipe.override(
        recipe.load(decoy.recipe), {"evaluation.meshes": 0, **size, **changes, **decoy.changes, "seeds": 1}
    )


def run_decoy(decoy: Decoy, config: Config, folder: Path, tell: Progress, warn: Warn) -> Row:
    """The row of one decoy, which is read from its folder if it was finished there, and otherwise run."""
    spec = make_recipe(decoy, config)
    with run_folder(folder / decoy.name, spec, warn=warn) as held:
        done = held.read_stage(NAME)
        if done is None or done["what"] != decoy.what:
            began = time.perf_counter()
            tell_decoy = prefix_progress(tell, decoy.name)
            if decoy.make is None:
                network = train(spec, source(spec), folder=held).member(0)
            else:
                network = decoy.make(spec, lambda: _train_heat(config, folder, warn))
            judged = judge_formula(distil_network(TrainedMember(network), spec, held, tell_decoy), spec, tell_decoy)
            row = _describe(decoy, spec, judged, time.perf_counter() - began)
            done = to_document(row)
            held.finish(NAME, done)
    kept = convert(done, DecoyRecord)
    # The outcome is judged again and not read, so that a changed expectation does not require another training.
    return Row(
        **asdict(kept),
        allowed=[each for each in OUTCOMES if each in decoy.allowed],
        outcome=judge_outcome(decoy, kept.verdict, kept.own_law),
    )


def _train_heat(config: Config, folder: Path, warn: Warn) -> Network:
    """The network of the decoy `heat`, which is trained if it is not in its folder yet."""
    spec = make_recipe(DECOYS["heat"], config)
    with run_folder(folder / "heat", spec, warn=warn) as held:
        return train(spec, source(spec), folder=held).member(0)


def _describe(decoy: Decoy, spec: recipe.Recipe, judged: Judged, seconds: float) -> DecoyRecord:
    """The record of a judged decoy: verdict, share explained, formula, and whether it is the law of the data."""
    formula, constants = judged.formula, judged.constants
    return DecoyRecord(
        name=decoy.name,
        kind="law" if decoy in LAWS else "network",
        what=decoy.what,
        verdict=judged.verdict,
        explained=None if constants is None else constants.explained.least,
        messages={} if formula is None else dict(formula.messages),
        outputs={} if formula is None else dict(formula.outputs),
        limit={} if constants is None else dict(constants.limit),
        own_law=formula is not None and is_law(formula.stages, spec),
        departure=None if formula is None else measure_departure(formula.stages, spec),
        reason=find_objection(judged.reasons),
        seconds=seconds,
    )


# Largest departure from the law on exact data: refitted constants are those of the law up to rounding, and the smallest
# wrong term of any decoy is 2e-2.
EXACT = 1e-6
# Largest departure relative to the noise s of the data. The standard error of a refitted constant is about s/30, from
# 512 problems of two cells; coefficients of T_N and T_P, which are correlated, are less certain than a single constant.
NOISE_SHARE = 1.0 / 3.0


def measure_departure(stages: tuple[Stage, ...], spec: recipe.Recipe) -> float | None:
    """The largest difference of a coefficient from the law's, over the law's largest; None if they cannot be compared.

    The formula is T' = T + Δt (r(T) + S) + Δt/V Σ m with a message m, for c = 1: the factor of the sum in the output is
    moved into the message, so that gauges cancel. Formula and law are expanded, and the coefficients of all products of
    powers compared. Formulas of several stages, or not linear in their sum, cannot be compared.
    """
    equation = recipe.equation_of(spec)
    at = {symbol(name): sp.Float(value) for name, value in recipe.settings(spec).items() if isinstance(value, float)}
    parts = _extract_message(stages)
    if parts is None:
        return None
    message, rest = (each.subs(at) for each in parts)
    stage = semi_discrete(equation)
    law = exchange_law(spec.data, equation)
    target = (stage.messages["z"].expression if law is None else law).subs(at)
    alone = symbol("T") + symbol("dt") * stage.outputs["rate"].expression.subs(symbol("z"), 0)
    size = max(map(abs, _collect_coefficients(target).values()))
    off = {**_collect_coefficients(message - target), **_collect_coefficients(rest - alone.subs(at))}
    return max((abs(each) for each in off.values()), default=0.0) / size


def is_law(stages: tuple[Stage, ...], spec: recipe.Recipe) -> bool:
    """Whether the formula is the law of the recipe's data, up to rounding, or up to a share of their noise."""
    off = measure_departure(stages, spec)
    return off is not None and off <= max(EXACT, NOISE_SHARE * spec.data.noise)


def _extract_message(stages: tuple[Stage, ...]) -> tuple[sp.Expr, sp.Expr] | None:
    """(m, T' without messages) of a formula T' = … + Δt/V Σ m; None if it does not have this form."""
    if len(stages) != 1 or len(stages[0].messages) != 1:
        return None
    ((name, message),) = stages[0].messages.items()
    output = stages[0].outputs["T_new"].expression
    factor = sp.diff(output, symbol(name))
    if symbol(name) in sp.expand(factor).free_symbols:
        return None
    receiver = {symbol(each): symbol(f"{each}_P") for each in ("T", "S", "V")}
    sent = (factor * symbol("V") / symbol("dt")).subs(receiver) * message.expression
    return sent, output.subs(symbol(name), 0)


def _collect_coefficients(expression: sp.Expr) -> dict[sp.Expr, float]:
    """The coefficients of the expanded expression by the products of powers that they multiply."""
    terms = sp.expand(expression).as_coefficients_dict()
    return {product: float(number) for product, number in terms.items() if number}
