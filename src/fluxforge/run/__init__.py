"""The folder of one training run: its lock, checkpoints, metrics and finished stages."""

from fluxforge.run._checkpoint import Checkpoints
from fluxforge.run._durable import Metrics
from fluxforge.run._folder import RunFolder, lock_folder
from fluxforge.run._progress import Progress, Warn, add_seconds, silent

__all__ = [
    "Checkpoints",
    "Metrics",
    "Progress",
    "RunFolder",
    "Warn",
    "add_seconds",
    "lock_folder",
    "silent",
]
