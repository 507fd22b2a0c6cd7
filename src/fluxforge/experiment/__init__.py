"""Fluxes from experiments: two cells solved by brute force, a network of the flux, its reduction, and its formula."""

from fluxforge.experiment._ablation import WithoutNetwork, regress_sparsely, search_without_network
from fluxforge.experiment._data import design_experiment, make_dataset
from fluxforge.experiment._discover import Discovered, Trained, discover_flux, train_and_reduce
from fluxforge.experiment._fit import ROUND_OFF, WITHIN, FittedFormula, fit_formula
from fluxforge.experiment._network import FluxNetwork, train_network
from fluxforge.experiment._properties import Check, Probe
from fluxforge.experiment._reduce import Reduced, reduce_flux
from fluxforge.experiment._scheme import Comparison, compare_flux, make_scheme
from fluxforge.experiment._setup import Dataset, Experiment, Form, Term, Variable, whole_form

__all__ = [
    "ROUND_OFF",
    "WITHIN",
    "Check",
    "Comparison",
    "Dataset",
    "Discovered",
    "Experiment",
    "FittedFormula",
    "FluxNetwork",
    "Form",
    "Probe",
    "Reduced",
    "Term",
    "Trained",
    "Variable",
    "WithoutNetwork",
    "compare_flux",
    "design_experiment",
    "discover_flux",
    "fit_formula",
    "make_dataset",
    "make_scheme",
    "reduce_flux",
    "regress_sparsely",
    "search_without_network",
    "train_and_reduce",
    "train_network",
    "whole_form",
]
