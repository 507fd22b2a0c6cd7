"""HDF5 files that an XDMF file refers to: plain files in its own folder, with data of their own."""

import importlib
from pathlib import Path
from typing import Any

from fluxforge.mesh.files._budget import Budget
from fluxforge.mesh.files._numbers import UnreadableError

# Each is a file that is opened twice, which takes a millisecond.
MOST_DATASETS = 1_000


class Datasets:
    """The HDF5 arrays that one mesh file refers to, all charged to one budget."""

    def __init__(self, folder: Path, budget: Budget) -> None:
        self.folder, self.budget = folder, budget
        self._count = 0
        self._files: set[str] = set()

    def check(self, reference: str, announced: int) -> None:
        """Refuse a reference "name.h5:/path" that leaves the folder or the file, and charge its data to the budget."""
        self._count += 1
        if self._count > MOST_DATASETS:
            raise UnreadableError(f"refers to more than {MOST_DATASETS} HDF5 arrays, which no mesh needs")
        path, nbytes = _plain_dataset(reference, announced, self.folder)
        if path.name not in self._files:
            self._files.add(path.name)
            self.budget.allow(path.stat().st_size)
        self.budget.spend(nbytes)


def _plain_dataset(reference: str, announced: int, folder: Path) -> tuple[Path, int]:
    """The file of a dataset that has as many numbers as announced, and the bytes they take."""
    # h5py takes a while to import, and few meshes need it.
    h5py = importlib.import_module("h5py")

    name, colon, inside = (word.strip() for word in reference.partition(":"))
    path = folder / name
    if not colon or name != Path(name).name or name in ("", "..") or "\\" in name or ":" in inside:
        raise UnreadableError(f"refers to {reference[:60]!r}; only HDF5 files in its own folder can be read")
    if path.is_symlink() or not path.is_file():
        raise UnreadableError(f"refers to {name!r}, which is not a plain file in its folder")
    try:
        with h5py.File(path, "r") as file:
            dataset = _dataset(h5py, file, inside)
            size, kind = dataset.size, dataset.dtype.kind
            own = dataset.external is None and not dataset.is_virtual
            nbytes = dataset.nbytes
    except (OSError, KeyError, ValueError, RuntimeError, AttributeError) as error:
        raise UnreadableError(f"refers to {reference[:60]!r}, which cannot be read ({error})") from error
    if not own or kind not in "iuf":
        raise UnreadableError(f"refers to {reference[:60]!r}, which is not a plain array of numbers")
    if size != announced:
        raise UnreadableError(f"announces {announced} numbers in {reference[:60]!r}, which has {size}: it is damaged")
    return path, int(nbytes)


def _dataset(h5py: Any, file: Any, inside: str) -> Any:
    """The dataset at a path all of whose steps stay in the file."""
    found = file
    for step in inside.strip("/").split("/"):
        if not isinstance(found.get(step, getlink=True), h5py.HardLink):
            raise ValueError(f"{step!r} is a link")
        found = found[step]
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"{inside!r} is not an array")
    return found
