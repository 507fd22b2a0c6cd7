"""Stages of a run for skewed meshes: parts of its search and laws that were validated are not repeated on resuming."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fluxforge import recipe
from fluxforge.run import Progress, RunFolder
from fluxforge.run.result import from_document, to_document
from fluxforge.run.skew import FamilyRow, LawRow, ScoredTrial, SearchStage, ValidatedLaw
from fluxforge.skew import (
    CORRECTED,
    FAMILIES,
    AbstractParts,
    ChosenLaw,
    Constants,
    FamilyScore,
    Scores,
    SearchPart,
    Trial,
    balances_of,
    law_text,
    least_coercivity,
    measure_extremes,
    score_family,
)

_SEARCH, _VALIDATED = "skew-search", "skew-validated"


@dataclass(frozen=True)
class FolderParts(AbstractParts):
    """Finished parts of the search as stages of a run folder."""

    folder: RunFolder

    def read(self, name: str) -> SearchPart | None:
        """The part of that name; None if it is not finished."""
        if (document := self.folder.read_stage(f"{_SEARCH}-{name}")) is None:
            return None
        stage = from_document(document, SearchStage, self.folder.path)
        trials = (
            Trial(Constants(*each.constants), Scores(each.error, each.step, each.coercivity)) for each in stage.trials
        )
        return SearchPart(tuple(trials), None if stage.chosen is None else Constants(*stage.chosen))

    def keep(self, name: str, part: SearchPart) -> None:
        """Finish the stage of a part."""
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
    """The corrected flux and every law on held-out meshes and problems, each a stage of the folder."""
    constants = {"corrected": CORRECTED, **{name: law.constants for name, law in laws.items()}}
    found: list[ValidatedLaw] = []
    for k, (name, own) in enumerate(constants.items()):
        tell(f"validating {name}", k, len(constants))
        if (document := folder.read_stage(f"{_VALIDATED}-{name}")) is not None:
            found.append(from_document(document, ValidatedLaw, folder.path))
            continue
        found.append(_validate(name, own, spec.seed, found[0] if found else None))
        folder.finish(f"{_VALIDATED}-{name}", to_document(found[-1]))
    return tuple(each.row for each in found)


def _validate(name: str, constants: Constants, seed: int, base: ValidatedLaw | None) -> ValidatedLaw:
    """A law's row; without `base`, the corrected flux, it is compared with itself."""
    balances = balances_of(constants)
    scores = [score_family(family, balances, seed=seed) for family in FAMILIES]
    steps = {each.family: each.step for each in scores}
    base_steps = steps if base is None else base.steps
    base_errors = {row.family: row.errors for row in (base.row.families if base is not None else scores)}
    extremes = measure_extremes(balances, seed=seed)
    row = LawRow(
        name=name,
        formula=law_text(constants),
        constants=constants._asdict(),
        families=tuple(_family_row(each, base_errors[each.family], base_steps[each.family]) for each in scores),
        coercivity=least_coercivity(balances, seed=seed),
        meshes=extremes.meshes,
        violated=extremes.violated,
        overshoot=extremes.worst,
    )
    return ValidatedLaw(row=row, steps=steps)


def _family_row(score: FamilyScore, errors: tuple[float, ...], step: float) -> FamilyRow:
    return FamilyRow(
        family=score.family,
        cells=score.cells,
        errors=score.errors,
        order=score.order,
        error_ratio=float(np.exp(np.mean(np.log(np.divide(score.errors, errors))))),
        step_ratio=score.step / step,
    )
