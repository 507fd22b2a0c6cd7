"""Schemes as algebra: stages of messages and outputs, built in, from a file, or discovered."""

from fluxforge.expression import symbol
from fluxforge.scheme._amplification import HIGHEST_ORDER, OneCellOrder, amplification, one_cell_order
from fluxforge.scheme._document import claims_to_document, find, from_document, load, save, to_document
from fluxforge.scheme._integrate import (
    TABLEAUX,
    TWO_POINT,
    Prepared,
    Row,
    Space,
    State,
    Tableau,
    find_tableau,
    integrate,
    runge_kutta,
    semi_discrete,
)
from fluxforge.scheme._linear import Affine, LinearStage, affine_form, linear_stages
from fluxforge.scheme._scheme import FAMILIES, Claims, Message, Output, Scheme, SchemeBuilder, Stage, check_scheme
from fluxforge.scheme._spaces import SPACES, split_name
from fluxforge.scheme._symbols import (
    IN_SPACE,
    INVARIANTS,
    NEXT,
    TURNED,
    Ghost,
    Hop,
    Reduction,
    invariant_names,
    message_symbols,
    output_symbols,
    symbol_units,
    turned_names,
)
<<<<<<< HEAD
from fluxforge.scheme._weighted import (
    LOCAL,
    face_invariants,
    local_number_stage,
    nested_tableau,
    weighted_scheme,
    weighted_stages,
)
=======
from fluxforge.scheme.fluxes import FLUXES, NumericalFlux
from fluxforge.scheme.limiters import LIMITERS, Limiter, limited, limiter_of
>>>>>>> main
from fluxforge.scheme.reference import CORRECTION, correction_text, gradient_names, gradient_stage

__all__ = [
    "CORRECTION",
    "FAMILIES",
    "FLUXES",
    "HIGHEST_ORDER",
    "INVARIANTS",
    "IN_SPACE",
<<<<<<< HEAD
    "LOCAL",
=======
    "LIMITERS",
>>>>>>> main
    "NEXT",
    "SPACES",
    "TABLEAUX",
    "TURNED",
    "TWO_POINT",
    "Affine",
    "Claims",
    "Ghost",
    "Hop",
    "Limiter",
    "LinearStage",
    "Message",
    "NumericalFlux",
    "OneCellOrder",
    "Output",
    "Prepared",
    "Reduction",
    "Row",
    "Scheme",
    "SchemeBuilder",
    "Space",
    "Stage",
    "State",
    "Tableau",
    "affine_form",
    "amplification",
    "check_scheme",
    "claims_to_document",
    "correction_text",
    "face_invariants",
    "find",
    "find_tableau",
    "from_document",
    "gradient_names",
    "gradient_stage",
    "integrate",
    "invariant_names",
    "limited",
    "limiter_of",
    "linear_stages",
    "load",
    "local_number_stage",
    "message_symbols",
    "nested_tableau",
    "one_cell_order",
    "output_symbols",
    "runge_kutta",
    "save",
    "semi_discrete",
    "split_name",
    "symbol",
    "symbol_units",
    "to_document",
    "turned_names",
    "weighted_scheme",
    "weighted_stages",
]
