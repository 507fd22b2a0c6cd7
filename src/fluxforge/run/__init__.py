"""The folder of one training run: its lock, its checkpoints, its metrics, its finished stages."""

from fluxforge.run._checkpoint import Checkpoints
from fluxforge.run._folder import RunFolder
from fluxforge.run._metrics import Metrics

__all__ = ["Checkpoints", "Metrics", "RunFolder"]
