"""The claims of the whole paper as one table: each sentence with the verdict that the results give it."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fluxforge.experiments import Verdict
from fluxforge.reproduction._part import Document
from fluxforge.reproduction._parts import PARTS
from fluxforge.reproduction._sentence import Sentence
from fluxforge.reproduction._sentences import SENTENCES

# From the least favourable to the most.
RANKED: tuple[Verdict, ...] = ("does not hold", "holds under a condition", "holds")
UNTESTABLE: Verdict = "cannot be tested from the text"
NOT_RUN = "not run here"
VERDICTS = (*reversed(RANKED), UNTESTABLE, NOT_RUN)
COLUMNS = ("claim", "section", "text", "condition", "verdict", "evidence", "parts", "commands", "data", "figures")


def claims(documents: Mapping[str, Document], sentences: Sequence[Sentence] = SENTENCES) -> list[dict[str, Any]]:
    """A row per sentence; of a part that is not among the documents, the verdict says so."""
    return [_row(sentence, documents) for sentence in sentences]


def counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many rows have each verdict."""
    return {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS}


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table for a spreadsheet."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: "; ".join(row[name]) if isinstance(row[name], list) else row[name] for name in COLUMNS})
    return text.getvalue()


def _row(sentence: Sentence, documents: Mapping[str, Document]) -> dict[str, Any]:
    found = list(_found(sentence, documents))
    parts = list(dict.fromkeys(part for part, _ in sentence.judged))
    missing = [part for part in parts if part not in documents]
    verdict = NOT_RUN if missing else _together([claim["verdict"] for claim in found], sentence.either)
    return {
        "claim": sentence.name,
        "section": sentence.section,
        "text": sentence.text,
        "condition": _condition(found) if verdict == "holds under a condition" else "",
        "verdict": verdict,
        "evidence": _evidence(sentence, found, missing),
        "parts": parts,
        "commands": [f"fluxforge reproduce {part}" for part in parts],
        "data": [f"{part}/{part}.json" for part in parts],
        "figures": [f"{part}/{figure}" for part in parts for figure in PARTS[part].figures],
    }


def _found(sentence: Sentence, documents: Mapping[str, Document]) -> Iterator[Mapping[str, Any]]:
    for part, name in sentence.judged:
        for claim in documents.get(part, {}).get("claims", ()):
            if claim["name"] == name:
                yield claim
                break
        else:
            # A document of an older version, which did not judge this yet.
            advice = f"the results of {part} are older than this: fluxforge reproduce {part} --again"
            yield {"name": name, "verdict": NOT_RUN, "evidence": advice}


def _together(verdicts: Sequence[str], either: bool) -> str:
    """A sentence holds as far as the weakest of what it says; of alternatives, under a condition if they differ."""
    if not verdicts:
        return UNTESTABLE
    if NOT_RUN in verdicts:
        return NOT_RUN
    if either and len(set(verdicts)) > 1:
        return "holds under a condition"
    # One check that speaks against a sentence decides it; without one, a check that could not be made leaves it open.
    return next(verdict for verdict in (RANKED[0], UNTESTABLE, *RANKED[1:]) if verdict in verdicts)


def _condition(found: Sequence[Mapping[str, Any]]) -> str:
    """What the verdict begins with: the named conditions of the checks, each once."""
    return "; ".join(dict.fromkeys(claim["condition"] for claim in found if claim.get("condition")))


def _evidence(sentence: Sentence, found: Sequence[Mapping[str, Any]], missing: Sequence[str]) -> str:
    if not sentence.judged:
        return sentence.why
    if missing:
        return f"needs the results of: {', '.join(missing)}"
    if len(found) == 1:
        return str(found[0]["evidence"])
    return " — ".join(f"{claim['name']}, {claim['verdict']}: {claim['evidence']}" for claim in found)
