"""The main job: data, training, distilling, certifying, in a folder that can be gone on with."""

from fluxforge.pipeline._discover import discover, explain, free_folder, resume
from fluxforge.pipeline._distillation import explained
from fluxforge.pipeline._folder import environment, finite, recipe_of, run_folder
from fluxforge.pipeline._found import Found
from fluxforge.pipeline._generalisation import generalise, lemma_count, reduce, summary
from fluxforge.pipeline._progress import Progress, silent
from fluxforge.pipeline._small_steps import ladder, problems_by_step, with_steps

__all__ = [
    "Found",
    "Progress",
    "discover",
    "environment",
    "explain",
    "explained",
    "finite",
    "free_folder",
    "generalise",
    "ladder",
    "lemma_count",
    "problems_by_step",
    "recipe_of",
    "reduce",
    "resume",
    "run_folder",
    "silent",
    "summary",
    "with_steps",
]
