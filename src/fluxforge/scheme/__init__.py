"""Schemes as algebra: stages of messages and outputs, built in, from a file, or discovered."""

from fluxforge.expression import symbol
from fluxforge.scheme._amplification import HIGHEST_ORDER, OneCellOrder, amplification, one_cell_order
from fluxforge.scheme._bounded import bounded, unbounded
from fluxforge.scheme._damped import SKEWED, Damping, damped_space
from fluxforge.scheme._diffusion import corrected_space
from fluxforge.scheme._document import claims_to_document, find, from_document, load, save, to_document
from fluxforge.scheme._integrate import TWO_POINT, Prepared, Space, State, integrate, semi_discrete
from fluxforge.scheme._linear import Affine, LinearStage, affine_form, linear_stages
from fluxforge.scheme._rkc2 import rkc2_tableau
from fluxforge.scheme._scheme import FAMILIES, Claims, Message, Output, Scheme, SchemeBuilder, Stage, check_scheme
from fluxforge.scheme._spaces import SPACES, bounded_scheme, named_scheme, split_name
from fluxforge.scheme._symbols import (
    ALL_ENDS,
    IN_SPACE,
    INVARIANTS,
    NEXT,
    STEP,
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
from fluxforge.scheme._tableau import EULER, TABLEAUX, Row, Tableau, find_tableau, runge_kutta
from fluxforge.scheme._tableau import rkl2 as rkl2_tableau
from fluxforge.scheme._weighted import (
    LOCAL,
    face_invariants,
    local_number_stage,
    nested_rkl2,
    nested_tableau,
    reaction_numbers,
    refuse_flux_form,
    weighted_scheme,
    weighted_stages,
)
from fluxforge.scheme._weighted_limit import formula_scheme
from fluxforge.scheme.fluxes import FLUXES, NumericalFlux
from fluxforge.scheme.limiters import LIMITERS, Limiter, limited, limiter_of
from fluxforge.scheme.reference import CORRECTION, correction_text, gradient_names, gradient_stage

__all__ = [
    "ALL_ENDS",
    "CORRECTION",
    "EULER",
    "FAMILIES",
    "FLUXES",
    "HIGHEST_ORDER",
    "INVARIANTS",
    "IN_SPACE",
    "LIMITERS",
    "LOCAL",
    "NEXT",
    "SKEWED",
    "SPACES",
    "STEP",
    "TABLEAUX",
    "TURNED",
    "TWO_POINT",
    "Affine",
    "Claims",
    "Damping",
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
    "bounded",
    "bounded_scheme",
    "check_scheme",
    "claims_to_document",
    "corrected_space",
    "correction_text",
    "damped_space",
    "face_invariants",
    "find",
    "find_tableau",
    "formula_scheme",
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
    "named_scheme",
    "nested_rkl2",
    "nested_tableau",
    "one_cell_order",
    "output_symbols",
    "reaction_numbers",
    "refuse_flux_form",
    "rkc2_tableau",
    "rkl2_tableau",
    "runge_kutta",
    "save",
    "semi_discrete",
    "split_name",
    "symbol",
    "symbol_units",
    "to_document",
    "turned_names",
    "unbounded",
    "weighted_scheme",
    "weighted_stages",
]
