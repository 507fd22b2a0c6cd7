"""The folder of one training run: its lock, checkpoints, metrics and finished stages."""

from fluxforge.run._checkpoint import Checkpoints
from fluxforge.run._durable import (
    Altered,
    Metrics,
    altered,
    digests,
    explained,
    read_record,
    remove_strays,
    write_durably,
)
from fluxforge.run._folder import LOCK, RunFolder, exclusive

__all__ = [
    "LOCK",
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
