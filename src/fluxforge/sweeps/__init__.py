"""Many discoveries of one recipe: the points of a sweep, in processes or on Ray, in one resumable folder."""

from fluxforge.sweeps._gallery import (
    AblationRow,
    Gallery,
    GalleryRow,
    GalleryRun,
    format_gallery,
    make_gallery,
    plan_gallery,
)
from fluxforge.sweeps._plan import Point, parse_over, parse_seeds
from fluxforge.sweeps._pool import PLACES, check_workers, run_processes
from fluxforge.sweeps._summary import PointResult, PointStatus, Rate, Sweep, show_changes, wilson_interval
from fluxforge.sweeps._sweep import default_folder, resume_sweep, sweep
from fluxforge.sweeps._worker import Job

__all__ = [
    "PLACES",
    "AblationRow",
    "Gallery",
    "GalleryRow",
    "GalleryRun",
    "Job",
    "Point",
    "PointResult",
    "PointStatus",
    "Rate",
    "Sweep",
    "check_workers",
    "default_folder",
    "format_gallery",
    "make_gallery",
    "parse_over",
    "parse_seeds",
    "plan_gallery",
    "resume_sweep",
    "run_processes",
    "show_changes",
    "sweep",
    "wilson_interval",
]
