"""The folder of one training run: its lock, checkpoints, metrics and finished stages."""

from fluxforge.run._checkpoint import Checkpoints
from fluxforge.run._durable import (
    Altered,
    Metrics,
    digest_files,
    explain_failure,
    find_altered,
    read_digests,
    remove_strays,
    write_durably,
)
from fluxforge.run._folder import LOCK, RunFolder, lock_folder
from fluxforge.run._progress import Progress, Warn, add_seconds, silent

__all__ = [
    "LOCK",
    "Altered",
    "Checkpoints",
    "Metrics",
    "Progress",
    "RunFolder",
    "Warn",
    "add_seconds",
    "digest_files",
    "explain_failure",
    "find_altered",
    "lock_folder",
    "read_digests",
    "remove_strays",
    "silent",
    "write_durably",
]
