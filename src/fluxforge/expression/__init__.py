"""Formulas: parsed by a whitelist into SymPy, printed, and evaluated on arrays. No text is ever executed."""

from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import Components, field, parse, parse_components
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import (
    COMPARISONS,
    COORDINATES,
    TIME,
    WORDS,
    AtMost,
    Below,
    Select,
    order_sides,
    symbol,
)
from fluxforge.expression._tokens import split_components

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
    "order_sides",
    "parse",
    "parse_components",
    "split_components",
    "symbol",
    "to_text",
]
