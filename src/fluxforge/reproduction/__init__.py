"""The paper as one piece: its parts, its claims, and the page that shows both."""

from fluxforge.reproduction._claims import VERDICTS, as_csv, claims, counted
from fluxforge.reproduction._compare import Comparison, Moved, PartComparison, compare
from fluxforge.reproduction._kinds import Kind
from fluxforge.reproduction._page import write_reproduction
from fluxforge.reproduction._part import Drawn, Part
from fluxforge.reproduction._parts import PARTS
from fluxforge.reproduction._places import rounded
from fluxforge.reproduction._run import documents, reproduce
from fluxforge.reproduction._sentence import Sentence
from fluxforge.reproduction._sentences import SENTENCES

__all__ = [
    "PARTS",
    "SENTENCES",
    "VERDICTS",
    "Comparison",
    "Drawn",
    "Kind",
    "Moved",
    "Part",
    "PartComparison",
    "Sentence",
    "as_csv",
    "claims",
    "compare",
    "counted",
    "documents",
    "reproduce",
    "rounded",
    "write_reproduction",
]
