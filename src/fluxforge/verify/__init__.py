"""Certificates: what a scheme is, measured. Evidence, never a bare boolean."""

from fluxforge.verify._alignment import Alignment, alignment
from fluxforge.verify._black_box import verify_step
from fluxforge.verify._certificate import Certificate, FamilyResult
from fluxforge.verify._claims import ClaimCheck
from fluxforge.verify._evidence import NUMERICAL_FAILURES, Line, Verdict
from fluxforge.verify._rates import Rates
from fluxforge.verify._verify import verify
from fluxforge.verify.patch import linear_field_defect
from fluxforge.verify.semidiscrete import other_equation

__all__ = [
    "NUMERICAL_FAILURES",
    "Alignment",
    "Certificate",
    "ClaimCheck",
    "FamilyResult",
    "Line",
    "Rates",
    "Verdict",
    "alignment",
    "linear_field_defect",
    "other_equation",
    "verify",
    "verify_step",
]
