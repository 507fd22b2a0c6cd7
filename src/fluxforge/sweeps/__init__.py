"""Many discoveries of one recipe: the points of a sweep, in processes or on Ray, in one resumable folder."""

from fluxforge.sweeps._points import Point, parse_over
from fluxforge.sweeps._pool import PLACES
from fluxforge.sweeps._records import PointResult, PointStatus, Rate, Sweep
from fluxforge.sweeps._summary import show_changes, wilson_interval
from fluxforge.sweeps._sweep import default_folder, resume_sweep, sweep

__all__ = [
    "PLACES",
    "Point",
    "PointResult",
    "PointStatus",
    "Rate",
    "Sweep",
    "default_folder",
    "parse_over",
    "resume_sweep",
    "show_changes",
    "sweep",
    "wilson_interval",
]
