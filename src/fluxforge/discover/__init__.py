"""The main job: data, training, distilling, certifying, in a folder that can be gone on with."""

from fluxforge.discover._discover import discover, explain, free_folder, resume
from fluxforge.discover._distillation import explained
from fluxforge.discover._folder import environment, finite, recipe_of, run_folder
from fluxforge.discover._found import Found
from fluxforge.discover._generalisation import generalise, lemma_count, reduce, summary
from fluxforge.discover._progress import Progress, silent
from fluxforge.discover._small_steps import ladder, problems_by_step, with_steps

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
