"""Schemes as algebra: stages of messages and outputs, built in, from a file, or discovered."""

from fluxforge.expression._symbols import symbol
from fluxforge.scheme._damped import SKEWED, Damping, damped_space
from fluxforge.scheme._diffusion import corrected_space
from fluxforge.scheme._document import SPACES, find, from_document, load, save, split_name, to_document
from fluxforge.scheme._integrate import TWO_POINT, Prepared, Space, State, integrate
from fluxforge.scheme._linear import (
    Affine,
    LinearStage,
    OneCellOrder,
    affine_form,
    amplification,
    linear_stages,
    one_cell_order,
)
from fluxforge.scheme._scheme import (
    FAMILIES,
    NEXT,
    TURNED,
    Claims,
    Ghost,
    Hop,
    Message,
    Output,
    Reduction,
    Scheme,
    Stage,
    message_symbols,
    output_symbols,
    symbol_units,
)
from fluxforge.scheme._tableau import EULER, TABLEAUX, Row, Tableau, find_tableau, rkc2_tableau, runge_kutta
from fluxforge.scheme._tableau import rkl2 as rkl2_tableau
from fluxforge.scheme._weighted import face_invariants, formula_scheme, nested_rkl2, nested_tableau, weighted_scheme
from fluxforge.scheme.fluxes import FLUXES, NumericalFlux
from fluxforge.scheme.limiters import LIMITERS, Limiter, limited, limiter_of
from fluxforge.scheme.reference import SchemeBuilder, gradient_stage
from fluxforge.scheme.transport import bounded, unbounded

__all__ = [
    "EULER",
    "FAMILIES",
    "FLUXES",
    "LIMITERS",
    "NEXT",
    "SKEWED",
    "SPACES",
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
    "corrected_space",
    "damped_space",
    "face_invariants",
    "find",
    "find_tableau",
    "formula_scheme",
    "from_document",
    "gradient_stage",
    "integrate",
    "limited",
    "limiter_of",
    "linear_stages",
    "load",
    "message_symbols",
    "nested_rkl2",
    "nested_tableau",
    "one_cell_order",
    "output_symbols",
    "rkc2_tableau",
    "rkl2_tableau",
    "runge_kutta",
    "save",
    "split_name",
    "symbol",
    "symbol_units",
    "to_document",
    "unbounded",
    "weighted_scheme",
]
