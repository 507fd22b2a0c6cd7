"""Runs of a discovery: data, training, distillation and certification, in a folder from which they can be resumed."""

from fluxforge.pipeline._carry import initial_field, unseen_mesh
from fluxforge.pipeline._discover import discover, explain, free_folder, resume
from fluxforge.pipeline._folder import run_folder
from fluxforge.pipeline._formula import Formula, Judged
from fluxforge.pipeline._problems import ladder, with_steps
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
    "discover",
    "explain",
    "free_folder",
    "initial_field",
    "ladder",
    "load_run",
    "resume",
    "run_folder",
    "to_document",
    "unseen_mesh",
    "with_steps",
]
