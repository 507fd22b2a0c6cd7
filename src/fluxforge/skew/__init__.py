"""Fluxes for skewed meshes, discovered: consistency is learned, what it leaves free is chosen by an objective."""

from fluxforge.skew._choose import OBJECTIVES, AbstractParts, Choice, SearchPart, Trial, choose_laws, missed_by
from fluxforge.skew._conductivity import CONDUCTIVITIES, SCALAR, Conductivity
from fluxforge.skew._consistency import CELLS, Consistency, FittedNumber, fit_limits, linear_defect
from fluxforge.skew._data import COLUMNS, INPUTS, FaceTable, apply_law, make_table, read_law, tabulate_faces
from fluxforge.skew._fields import Field, manufactured_problems, random_harmonic, random_polynomial
from fluxforge.skew._law import CORRECTED, ChosenLaw, Constants, face_weights, law_text, to_damping
from fluxforge.skew._meshes import FAMILIES, Stretched, make_mesh, random_meshes, stretch_mesh
from fluxforge.skew._monotone import MonotoneSolution, solve_monotone
from fluxforge.skew._network import Coefficients, load_coefficients, train_coefficients
from fluxforge.skew._objective import ASPECT, Judge, Scores, SteadyProblem
from fluxforge.skew._operator import (
    FluxOperator,
    Invariants,
    coercivity,
    face_invariants,
    largest_step,
    solve_steady,
)
from fluxforge.skew._validate import (
    SIZES,
    Extremes,
    FamilyScore,
    HeldOut,
    balances_of,
    fit_order,
    least_coercivity,
    measure_extremes,
    score_family,
)

__all__ = [
    "ASPECT",
    "CELLS",
    "COLUMNS",
    "CONDUCTIVITIES",
    "CORRECTED",
    "FAMILIES",
    "INPUTS",
    "OBJECTIVES",
    "SCALAR",
    "SIZES",
    "AbstractParts",
    "Choice",
    "ChosenLaw",
    "Coefficients",
    "Conductivity",
    "Consistency",
    "Constants",
    "Extremes",
    "FaceTable",
    "FamilyScore",
    "Field",
    "FittedNumber",
    "FluxOperator",
    "HeldOut",
    "Invariants",
    "Judge",
    "MonotoneSolution",
    "Scores",
    "SearchPart",
    "SteadyProblem",
    "Stretched",
    "Trial",
    "apply_law",
    "balances_of",
    "choose_laws",
    "coercivity",
    "face_invariants",
    "face_weights",
    "fit_limits",
    "fit_order",
    "largest_step",
    "law_text",
    "least_coercivity",
    "linear_defect",
    "load_coefficients",
    "make_mesh",
    "make_table",
    "manufactured_problems",
    "measure_extremes",
    "missed_by",
    "random_harmonic",
    "random_meshes",
    "random_polynomial",
    "read_law",
    "score_family",
    "solve_monotone",
    "solve_steady",
    "stretch_mesh",
    "tabulate_faces",
    "to_damping",
    "train_coefficients",
]
