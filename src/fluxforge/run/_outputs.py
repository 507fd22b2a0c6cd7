"""The names of the files that a finished run leaves, which say whether its formula was accepted."""

from typing import NamedTuple, TypeAlias

from fluxforge.run.carry import CarryResult
from fluxforge.run.limiter import LimiterResult
from fluxforge.run.result import Discovery, Generalisation
from fluxforge.run.skew import SkewResult

Result: TypeAlias = Discovery | Generalisation | CarryResult | LimiterResult | SkewResult
"""The record of a finished run, of any kind."""


class OutputNames(NamedTuple):
    """The file names of a run's scheme and of its certificate."""

    scheme: str
    certificate: str


ACCEPTED = OutputNames("scheme.json", "certificate.json")
CANDIDATE = OutputNames("candidate.json", "candidate-certificate.json")


def name_outputs(result: Result) -> OutputNames:
    """The file names of scheme and certificate, which depend on whether the formula was accepted.

    A limiter is accepted if it is not refused, any other formula if it is recovered.
    """
    if isinstance(result, Generalisation):
        return CANDIDATE
    if isinstance(result, LimiterResult):
        return CANDIDATE if result.verdict == "refused" else ACCEPTED
    accepted = result.recovered if isinstance(result, Discovery) else result.verdict == "recovered"
    return ACCEPTED if accepted else CANDIDATE
