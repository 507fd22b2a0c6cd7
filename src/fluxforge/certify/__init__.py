"""Certificates: the measured properties of a scheme, each with its evidence."""

from fluxforge.certify._certificate import Certificate, FamilyResult
from fluxforge.certify._doubts import list_doubts
from fluxforge.certify._evidence import ClaimCheck, Line, Verdict
from fluxforge.certify._studies import Rates
from fluxforge.certify._summary import summarise
from fluxforge.certify._verify import verify
from fluxforge.certify._verify_step import verify_step
from fluxforge.certify.patch import linear_field_defect
from fluxforge.certify.semidiscrete import other_equation

__all__ = [
    "Certificate",
    "ClaimCheck",
    "FamilyResult",
    "Line",
    "Rates",
    "Verdict",
    "linear_field_defect",
    "list_doubts",
    "other_equation",
    "summarise",
    "verify",
    "verify_step",
]
