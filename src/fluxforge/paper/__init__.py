"""The experiments of the paper: run them, compare two runs, judge the paper's claims, write the page of all results."""

from fluxforge.paper._claims import SENTENCES, VERDICTS, Claim, Sentence, count_verdicts, format_csv, judge_claims
from fluxforge.paper._compare import ChangedNumber, Comparison, PartComparison, compare
from fluxforge.paper._network_kinds import Carried, KindVerdict, read_carried
from fluxforge.paper._numbers import Kind, round_document
from fluxforge.paper._part import FigureText, Part
from fluxforge.paper._run import PARTS, Reproduction, read_documents, reproduce, write_reproduction
from fluxforge.paper.studies._records import to_document

__all__ = [
    "PARTS",
    "SENTENCES",
    "VERDICTS",
    "Carried",
    "ChangedNumber",
    "Claim",
    "Comparison",
    "FigureText",
    "Kind",
    "KindVerdict",
    "Part",
    "PartComparison",
    "Reproduction",
    "Sentence",
    "compare",
    "count_verdicts",
    "format_csv",
    "judge_claims",
    "read_carried",
    "read_documents",
    "reproduce",
    "round_document",
    "to_document",
    "write_reproduction",
]
