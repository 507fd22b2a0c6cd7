"""The paper's claims: the verdict on each sentence from the checks that judge it, and their table as CSV."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files

import msgspec
from msgspec import Struct

from fluxforge.paper._network_kinds import NOT_RUN, Carried, KindVerdict, Measure, judge_both_kinds
from fluxforge.paper._part import PART_TEXTS
from fluxforge.paper.studies._records import UNTESTABLE, Verdict
from fluxforge.report._tables import table_csv
from fluxforge.run._record import Document

# From the least favourable verdict to the most favourable.
VERDICT_ORDER: tuple[Verdict, ...] = ("does not hold", "holds under a condition", "holds")
VERDICTS = (*reversed(VERDICT_ORDER), UNTESTABLE, NOT_RUN)


class Sentence(Struct, frozen=True, forbid_unknown_fields=True):
    """A claim of the paper in its own words, shortened.

    `judged` names the checks, as pairs of part and check, from which its verdict is computed: all have to hold. With
    `either`, one is enough, and if they differ the claim holds under a condition. For a sentence that no check judges,
    `why` says what is missing to test it. `kinds` is the measure by which a sentence on extrapolation is judged for
    both kinds of networks.
    """

    name: str
    section: str
    text: str
    judged: tuple[tuple[str, str], ...] = ()
    why: str = ""
    either: bool = False
    kinds: Measure | None = None


SENTENCES = msgspec.toml.decode(
    files("fluxforge.paper").joinpath("sentences.toml").read_bytes(), type=dict[str, tuple[Sentence, ...]]
)["sentence"]


class Check(Struct, frozen=True):
    """A check in the document of a part: its verdict, the evidence, and the condition of a conditional verdict."""

    name: str
    verdict: str
    evidence: str
    condition: str | None = None


class Claim(Struct, frozen=True):
    """A sentence with its verdict and evidence, and the parts, commands, data files and figures that these come from.

    `kinds` has the verdicts for both kinds of networks if the sentence is about extrapolation, otherwise it is empty.
    """

    claim: str
    section: str
    text: str
    condition: str
    verdict: str
    evidence: str
    parts: list[str]
    commands: list[str]
    data: list[str]
    figures: list[str]
    kinds: list[KindVerdict] = []


def judge_claims(
    documents: Mapping[str, Document], sentences: Sequence[Sentence] | None = None, carried: Carried | None = None
) -> list[Claim]:
    """Judge sentences, by default all of the paper, from the documents of its parts, given by name.

    A sentence has the verdict "not run here" if a part that it needs is missing. `carried` has the measurements of a
    network in the form of a flux, for which sentences on extrapolation are judged in addition to the paper's networks.
    """
    return [_judge(sentence, documents, carried) for sentence in (SENTENCES if sentences is None else sentences)]


def count_verdicts(claims: Sequence[Claim]) -> dict[str, int]:
    """The number of claims with each verdict."""
    return {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}


def format_csv(claims: Sequence[Claim]) -> str:
    """The claims as CSV text: one column per field, with lists joined by semicolons."""
    return table_csv(
        [
            {
                name: "; ".join(map(str, each)) if isinstance(each, list) else each
                for name, each in msgspec.structs.asdict(claim).items()
            }
            for claim in claims
        ],
        Claim.__struct_fields__,
    )


def _judge(sentence: Sentence, documents: Mapping[str, Document], carried: Carried | None) -> Claim:
    checks = list(_find_checks(sentence, documents))
    parts = list(dict.fromkeys(part for part, _ in sentence.judged))
    missing = [part for part in parts if part not in documents]
    verdict = NOT_RUN if missing else _combine_verdicts([check.verdict for check in checks], sentence.either)
    # dict.fromkeys removes repeated conditions and preserves their order.
    conditions = "; ".join(dict.fromkeys(check.condition for check in checks if check.condition))
    return Claim(
        claim=sentence.name,
        section=sentence.section,
        text=sentence.text,
        condition=conditions if verdict == "holds under a condition" else "",
        verdict=verdict,
        evidence=_describe_evidence(sentence, checks, missing),
        parts=parts,
        commands=[f"fluxforge reproduce {part}" for part in parts],
        data=[f"{part}/{part}.json" for part in parts],
        figures=[f"{part}/{figure}" for part in parts for figure in PART_TEXTS[part].figures],
        kinds=[] if sentence.kinds is None else judge_both_kinds(sentence.kinds, documents, carried),
    )


def _find_checks(sentence: Sentence, documents: Mapping[str, Document]) -> Iterator[Check]:
    for part, name in sentence.judged:
        for check in documents.get(part, {}).get("claims", ()):
            if check["name"] == name:
                yield msgspec.convert(check, Check)
                break
        else:
            # A document of an older version may lack the check.
            advice = f"the results of {part} lack this check of a later version: fluxforge reproduce {part} --again"
            yield Check(name, NOT_RUN, advice)


def _combine_verdicts(verdicts: Sequence[str], either: bool) -> str:
    """The least favourable of the verdicts; with `either` and different ones, "holds under a condition"."""
    if not verdicts:
        return UNTESTABLE
    if NOT_RUN in verdicts:
        return NOT_RUN
    if either and len(set(verdicts)) > 1:
        return "holds under a condition"
    # One failed check refutes a sentence; if none fails, one that could not be made leaves the sentence untestable.
    return next(verdict for verdict in (VERDICT_ORDER[0], UNTESTABLE, *VERDICT_ORDER[1:]) if verdict in verdicts)


def _describe_evidence(sentence: Sentence, checks: Sequence[Check], missing: Sequence[str]) -> str:
    if not sentence.judged:
        return sentence.why
    if missing:
        return f"needs the results of: {', '.join(missing)}"
    if len(checks) == 1:
        return checks[0].evidence
    return " — ".join(f"{check.name}, {check.verdict}: {check.evidence}" for check in checks)
