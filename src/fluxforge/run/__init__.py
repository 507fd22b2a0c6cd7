"""The folder of one training run: its lock, its checkpoints, its metrics, its finished stages."""

from fluxforge.run._checkpoint import Checkpoints
from fluxforge.run._durable import explained, remove_strays, write_durably
from fluxforge.run._folder import RunFolder
from fluxforge.run._lock import exclusive
from fluxforge.run._metrics import Metrics
from fluxforge.run._outputs import Altered, altered, digests, read_record

__all__ = [
    "Altered",
    "Checkpoints",
    "Metrics",
    "RunFolder",
    "altered",
    "digests",
    "exclusive",
    "explained",
    "read_record",
    "remove_strays",
    "write_durably",
]
