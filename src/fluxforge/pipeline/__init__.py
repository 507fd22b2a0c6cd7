"""Runs of a discovery: data, training, distillation and certification, in a folder from which they can be resumed."""

from fluxforge.pipeline._carry import initial_field, unseen_mesh
from fluxforge.pipeline._discover import check_feasible, discover, explain, free_folder, resume
from fluxforge.pipeline._distillation import distil_network
from fluxforge.pipeline._folder import recipe_of, run_folder
from fluxforge.pipeline._formula import Formula, Judged, TrainedMember
from fluxforge.pipeline._generalisation import generalise, reduce_networks
from fluxforge.pipeline._judgement import judge_formula
from fluxforge.pipeline._problems import ladder, problems_by_step, with_steps
from fluxforge.pipeline._run import MetricColumns, Run, load_run
from fluxforge.run._record import Document
from fluxforge.run.result import Discovery, Evaluation, Generalisation, Measured, to_document

__all__ = [
    "Discovery",
    "Document",
    "Evaluation",
    "Formula",
    "Generalisation",
    "Judged",
    "Measured",
    "MetricColumns",
    "Run",
    "TrainedMember",
    "check_feasible",
    "discover",
    "distil_network",
    "explain",
    "free_folder",
    "generalise",
    "initial_field",
    "judge_formula",
    "ladder",
    "load_run",
    "problems_by_step",
    "recipe_of",
    "reduce_networks",
    "resume",
    "run_folder",
    "to_document",
    "unseen_mesh",
    "with_steps",
]
