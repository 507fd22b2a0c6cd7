"""Kinds of runs, and their outcomes: a record, and if a formula was found its scheme and certificate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from fluxforge import recipe
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._verify import verify
from fluxforge.run._folder import RunFolder
from fluxforge.run._outputs import Result
from fluxforge.run._progress import Progress
from fluxforge.run.carry import CarryResult
from fluxforge.run.limiter import LimiterResult
from fluxforge.run.result import Discovery, Generalisation, from_document
from fluxforge.run.skew import SkewResult
from fluxforge.scheme._scheme import Scheme

# Kinds of runs. The document of a finished run is stored as the stage named like its kind; that of an experiment as the
# stage `discovery`, since it is a record of that kind.
DISCOVERY, GENERALISATION, CARRY, LIMITER, SKEW = "discovery", "generalisation", "carry", "limiter", "skew"
EXPERIMENT = "experiment"
SomeResult = TypeVar("SomeResult", bound=Result)
RESULTS: Mapping[str, type[Result]] = {
    CARRY: CarryResult,
    DISCOVERY: Discovery,
    EXPERIMENT: Discovery,
    GENERALISATION: Generalisation,
    LIMITER: LimiterResult,
    SKEW: SkewResult,
}
"""The type of the record of each kind of runs."""

FAMILIES = ("squares", "right", "irregular")


@dataclass(frozen=True)
class Outcome(Generic[SomeResult]):
    """The record of a finished run; if a formula was found, its scheme and certificate.

    `others` are further schemes by file name, `networks` the names of the files to which the run wrote networks.
    """

    result: SomeResult
    scheme: Scheme | None = None
    certificate: Certificate | None = None
    others: Mapping[str, Scheme] = field(default_factory=dict)
    networks: tuple[str, ...] = ()


# Writes the report of an outcome into a folder and returns the paths of its files; reads metrics from the run folder.
WriteReport: TypeAlias = Callable[[Outcome[SomeResult], RunFolder, Path], list[Path]]


def run_kind(spec: recipe.Recipe) -> str:
    """The kind of run of a recipe, which depends on the data, the form of the network, and whether there are arms."""
    if isinstance(spec.data, recipe.Rows):
        return LIMITER
    if isinstance(spec.data, recipe.Skew):
        return SKEW
    if isinstance(spec.data, recipe.Experiment):
        return EXPERIMENT
    return CARRY if spec.network.form == "flux" else GENERALISATION if spec.arms else DISCOVERY


def read_result(spec: recipe.Recipe, folder: RunFolder) -> Result | None:
    """The record of a finished run; None if the run is not finished. Raises DocumentError if it is damaged."""
    kind = run_kind(spec)
    document = folder.read_stage(result_stage(spec))
    return None if document is None else from_document(document, RESULTS[kind], folder.path)


def result_stage(spec: recipe.Recipe) -> str:
    """The name of the stage that stores the document of a finished run."""
    kind = run_kind(spec)
    return DISCOVERY if kind == EXPERIMENT else kind


def verify_scheme(scheme: Scheme, tell: Progress) -> Certificate:
    """The quick certificate of a scheme, on the mesh families `FAMILIES`."""
    return verify(
        scheme, families=FAMILIES, quick=True, progress=lambda what, k, of: tell(f"certifying: {what}", k - 1, of)
    )
