"""Stages of a run for skewed meshes: finished parts of search and validation are not repeated when it is resumed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from msgspec.structs import asdict

from fluxforge import recipe
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress
from fluxforge.run.result import from_document, to_document
from fluxforge.run.skew import (
    FamilyRow,
    FamilyStage,
    KindRow,
    LawRow,
    ScoredTrial,
    SearchStage,
    StretchedRow,
    StretchedStage,
)
from fluxforge.scheme._damped import SKEWED
from fluxforge.skew._choose import AbstractParts, SearchPart, Trial
from fluxforge.skew._flux import CORRECTED, ChosenLaw, Constants, balances_of, law_text
from fluxforge.skew._objective import Scores
from fluxforge.skew._problems import CONDUCTIVITIES, SCALAR, Conductivity
from fluxforge.skew._validate import FamilyScore, HeldOut, least_coercivity, measure_extremes, score_family

_SEARCH, _VALIDATED = "skew-search", "skew-validated"


@dataclass(frozen=True)
class FolderParts(AbstractParts):
    """Finished parts of the search, stored as stages of a run folder."""

    folder: RunFolder

    def read(self, name: str) -> SearchPart | None:
        """The part of the search with this name; None if it is not finished."""
        if (document := self.folder.read_stage(f"{_SEARCH}-{name}")) is None:
            return None
        stage = from_document(document, SearchStage, self.folder.path)
        trials = (
            Trial(Constants(*each.constants), Scores(each.error, each.step, each.coercivity)) for each in stage.trials
        )
        return SearchPart(tuple(trials), None if stage.chosen is None else Constants(*stage.chosen))

    def keep(self, name: str, part: SearchPart) -> None:
        """Store a finished part of the search."""
        trials = tuple(
            ScoredTrial(
                constants=each.constants,
                error=dict(each.scores.error),
                step=dict(each.scores.step),
                coercivity=each.scores.coercivity,
            )
            for each in part.trials
        )
        stage = SearchStage(trials=trials, chosen=part.chosen)
        self.folder.finish(f"{_SEARCH}-{name}", to_document(stage))


def validate_laws(
    laws: Mapping[str, ChosenLaw], spec: recipe.Recipe, folder: RunFolder, tell: Progress
) -> tuple[LawRow, ...]:
    """Measure the corrected flux and every law on held-out meshes and problems; finished families are read back."""
    assert isinstance(spec.data, recipe.Skew)
    constants = {"corrected": CORRECTED, **{name: law.constants for name, law in laws.items()}}
    conductivity = CONDUCTIVITIES[spec.data.conductivity]
    if conductivity is not SCALAR:
        # For comparison, the fluxes chosen with k = 1: they show whether a search with a tensor is worth its time.
        constants |= {name: Constants(*map(float, damping.constants)) for name, damping in SKEWED.items()}
    by_family = []
    for k, family in enumerate(families := conductivity.families):
        tell(f"validating on {family}", k, len(families) + 1)
        by_family.append(
            _read_or_run(folder, family, FamilyStage, partial(_score_family, family, constants, spec)).rows
        )
    tell("validating on stretched meshes", len(families), len(families) + 1)
    stretched = _read_or_run(
        folder, "stretched", StretchedStage, lambda: _measure_stretched(constants, spec.seed, conductivity)
    ).rows
    return tuple(
        LawRow(
            name=name,
            formula=law_text(each),
            constants=each._asdict(),
            families=tuple(rows[name] for rows in by_family),
            **asdict(stretched[name]),
        )
        for name, each in constants.items()
    )


Stage = TypeVar("Stage", FamilyStage, StretchedStage)


def _read_or_run(folder: RunFolder, name: str, kind: type[Stage], run: Callable[[], Stage]) -> Stage:
    """Read the result of a validation stage, or run it and store its result."""
    if (document := folder.read_stage(f"{_VALIDATED}-{name}")) is not None:
        return from_document(document, kind, folder.path)
    stage = run()
    folder.finish(f"{_VALIDATED}-{name}", to_document(stage))
    return stage


def _score_family(family: str, constants: Mapping[str, Constants], spec: recipe.Recipe) -> FamilyStage:
    assert isinstance(spec.data, recipe.Skew)
    size = HeldOut(problems=3 * spec.data.problems)
    balances = {name: balances_of(each) for name, each in constants.items()}
    conductivity = CONDUCTIVITIES[spec.data.conductivity]
    scores = score_family(family, balances, seed=spec.seed, size=size, conductivity=conductivity)
    return FamilyStage(rows={name: describe_family(score) for name, score in scores.items()})


def describe_family(score: FamilyScore) -> FamilyRow:
    """The record of a score; its ratios are those of the kind of problems with the largest error ratio."""
    worst = score.worst
    return FamilyRow(
        family=score.family,
        cells=score.cells,
        errors=score.errors,
        order=score.order,
        error_ratio=worst.error_ratio,
        ratio_error=worst.ratio_error,
        share_below=worst.share_below,
        step_ratio=score.step_ratio,
        kinds=tuple(KindRow(**vars(each)) for each in score.kinds),
    )


def _measure_stretched(constants: Mapping[str, Constants], seed: int, conductivity: Conductivity) -> StretchedStage:
    rows = {}
    for name, each in constants.items():
        extremes = measure_extremes(balances_of(each), seed=seed, conductivity=conductivity)
        rows[name] = StretchedRow(
            coercivity=least_coercivity(balances_of(each), seed=seed, conductivity=conductivity),
            meshes=extremes.meshes,
            violated=extremes.violated,
            overshoot=extremes.worst,
        )
    return StretchedStage(rows=rows)
