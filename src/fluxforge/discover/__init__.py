"""The main job: data, training, distilling, certifying, in a folder that can be gone on with."""

from fluxforge.discover._discover import discover, resume
from fluxforge.discover._folder import environment, recipe_of, run_folder
from fluxforge.discover._generalisation import generalise, lemma_count, reduce, summary
from fluxforge.discover._progress import Progress, silent

__all__ = [
    "Progress",
    "discover",
    "environment",
    "generalise",
    "lemma_count",
    "recipe_of",
    "reduce",
    "resume",
    "run_folder",
    "silent",
    "summary",
]
