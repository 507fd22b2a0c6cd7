"""Many runs of one recipe: the points of a sweep, run in processes or on Ray, in a folder that can be resumed."""

from fluxforge.sweeps._gallery import (
    AblationRow,
    Exhibit,
    Gallery,
    GalleryRow,
    GalleryRun,
    format_gallery,
    make_gallery,
    plan_gallery,
)
from fluxforge.sweeps._plan import parse_over, parse_seeds
from fluxforge.sweeps._summary import PointResult, PointStatus, Rate, Sweep, wilson_interval
from fluxforge.sweeps._sweep import default_folder, resume_sweep, sweep

__all__ = [
    "AblationRow",
    "Exhibit",
    "Gallery",
    "GalleryRow",
    "GalleryRun",
    "PointResult",
    "PointStatus",
    "Rate",
    "Sweep",
    "default_folder",
    "format_gallery",
    "make_gallery",
    "parse_over",
    "parse_seeds",
    "plan_gallery",
    "resume_sweep",
    "sweep",
    "wilson_interval",
]
