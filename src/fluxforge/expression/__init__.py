"""Formulas: text → SymPy by a whitelist parser, back to text, and onto arrays. No text is ever executed."""

from fluxforge.expression._algebra import ARITY
from fluxforge.expression._conditions import COMPARISONS, AtMost, Below, Select, sides
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._fields import Components, field, parse_components, split_components
from fluxforge.expression._parse import parse
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import COORDINATES, TIME, symbol, symbols_of

# Names that mean something to the parser, so that no symbol may bear them.
WORDS = frozenset((*ARITY, "pi"))

__all__ = [
    "COMPARISONS",
    "COORDINATES",
    "TIME",
    "WORDS",
    "AtMost",
    "Below",
    "Components",
    "Select",
    "evaluate",
    "field",
    "parse",
    "parse_components",
    "sides",
    "split_components",
    "symbol",
    "symbols_of",
    "to_text",
]
