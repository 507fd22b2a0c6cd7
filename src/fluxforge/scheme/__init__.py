"""Schemes as algebra: stages of messages and outputs, built in, from a file, or discovered."""

from fluxforge.expression import symbol
from fluxforge.scheme._amplification import HIGHEST_ORDER, OneCellOrder, amplification, one_cell_order
from fluxforge.scheme._document import claims_to_document, find, from_document, load, save, to_document
from fluxforge.scheme._integrate import TABLEAUX, Row, Tableau, integrate, runge_kutta, semi_discrete
from fluxforge.scheme._linear import Affine, LinearStage, affine_form, linear_stages
from fluxforge.scheme._scheme import FAMILIES, Claims, Message, Output, Scheme, SchemeBuilder, Stage, check_scheme
from fluxforge.scheme._symbols import (
    IN_SPACE,
    INVARIANTS,
    NEXT,
    TURNED,
    Ghost,
    Hop,
    invariant_names,
    message_symbols,
    output_symbols,
    symbol_units,
)
from fluxforge.scheme.reference import CORRECTION, correction_text, gradient_names, gradient_stage

__all__ = [
    "CORRECTION",
    "FAMILIES",
    "HIGHEST_ORDER",
    "INVARIANTS",
    "IN_SPACE",
    "NEXT",
    "TABLEAUX",
    "TURNED",
    "Affine",
    "Claims",
    "Ghost",
    "Hop",
    "LinearStage",
    "Message",
    "OneCellOrder",
    "Output",
    "Row",
    "Scheme",
    "SchemeBuilder",
    "Stage",
    "Tableau",
    "affine_form",
    "amplification",
    "check_scheme",
    "claims_to_document",
    "correction_text",
    "find",
    "from_document",
    "gradient_names",
    "gradient_stage",
    "integrate",
    "invariant_names",
    "linear_stages",
    "load",
    "message_symbols",
    "one_cell_order",
    "output_symbols",
    "runge_kutta",
    "save",
    "semi_discrete",
    "symbol",
    "symbol_units",
    "to_document",
]
