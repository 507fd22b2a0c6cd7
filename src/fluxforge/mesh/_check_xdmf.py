"""Checks of XDMF files before meshio reads them: no XML entities, HDF5 only in the same folder, bounded memory."""

import importlib
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fluxforge.mesh._read_parts import VIEW, Budget, UnreadableError, parse_count, parse_xml

# NumPy's own limit; without a limit the product of the dimensions could have any number of digits.
MOST_DIMENSIONS = 32


def check_xdmf(data: bytes, folder: Path) -> None:
    """Raise UnreadableError if an array announces more than it holds, or lies in a file other than HDF5 in `folder`.

    All arrays are charged to one budget, for the file and the HDF5 files it refers to.
    """
    tree = parse_xml(data, "Xdmf")
    for element in tree.iter():
        # The text of some elements, such as <Information>, is parsed as XML again.
        if "<!" in (element.text or ""):
            raise UnreadableError(
                f"has '<!' in the text of an element {element.tag[:60]!r}, where it could declare a document type "
                "(<!DOCTYPE): remove it"
            )
    budget = Budget(len(data))
    datasets = Datasets(folder, budget)
    for item in tree.iter("DataItem"):
        if "Reference" in item.attrib:
            raise UnreadableError(
                "has an array given as a reference to another array, which cannot be read: save its numbers instead"
            )
        announced = _dimensions(item)
        text = (item.text or "").strip()
        match item.get("Format"):
            case "XML":
                if announced > len(text):
                    raise UnreadableError(f"announces an array of {announced} numbers and lists fewer: it is damaged")
            case "HDF":
                datasets.check(text, announced)
            case other:
                raise UnreadableError(f"has an array in format {other!r}, which cannot be read; only XML and HDF can")
    # A run of cells of one kind takes two numbers or more, and meshio makes views per run: see VIEW.
    runs = sum(_dimensions(item) for topology in tree.iter("Topology") for item in topology.iter("DataItem")) // 2
    attributes = sum(1 for _ in tree.iter("Attribute"))
    budget.spend(VIEW * runs * attributes, f"lists {attributes} attributes, which take")


def _dimensions(item: ElementTree.Element) -> int:
    given = item.get("Dimensions") or ""
    words = given.split()
    if len(words) > MOST_DIMENSIONS:
        raise UnreadableError(
            f"has an array with Dimensions={given[:60]!r}, which are {len(words)} dimensions; at most "
            f"{MOST_DIMENSIONS} are read"
        )
    counts = [count for word in words if (count := parse_count(word, digits=19)) is not None]
    if not words or len(counts) < len(words):
        raise UnreadableError(
            f"has an array with Dimensions={given[:60]!r}, where whole numbers of at most 19 digits are expected"
        )
    return math.prod(counts)


# Checking and reading a dataset each open its file, which together take about a millisecond.
MOST_DATASETS = 1_000


class Datasets:
    """The HDF5 arrays that one mesh file refers to, all charged to one budget."""

    def __init__(self, folder: Path, budget: Budget) -> None:
        self.folder, self.budget = folder, budget
        self._count = 0
        self._files: set[str] = set()

    def check(self, reference: str, announced: int) -> None:
        """Check a reference "name.h5:/path" and charge its data; UnreadableError if it leaves the folder."""
        self._count += 1
        if self._count > MOST_DATASETS:
            raise UnreadableError(f"refers to more than {MOST_DATASETS} HDF5 arrays; at most that many are read")
        path, nbytes = _plain_dataset(reference, announced, self.folder)
        if path.name not in self._files:
            self._files.add(path.name)
            self.budget.allow(path.stat().st_size)
        self.budget.spend(nbytes)


def _plain_dataset(reference: str, announced: int, folder: Path) -> tuple[Path, int]:
    """The file of a dataset, and the bytes it takes; UnreadableError unless it has as many numbers as announced."""
    # h5py takes a while to import, and few meshes need it.
    h5py = importlib.import_module("h5py")

    name, colon, inside = (word.strip() for word in reference.partition(":"))
    path = folder / name
    if not colon or name != Path(name).name or name in ("", "..") or "\\" in name or ":" in inside:
        raise UnreadableError(
            f"refers to {reference[:60]!r}; only arrays of HDF5 files in the folder of the .xdmf file can be read"
        )
    if path.is_symlink() or not path.is_file():
        raise UnreadableError(f"refers to {name!r}, which is not a regular file in the folder of the .xdmf file")
    try:
        with h5py.File(path, "r") as file:
            dataset = _dataset(h5py, file, inside)
            size, kind = dataset.size, dataset.dtype.kind
            own = dataset.external is None and not dataset.is_virtual
            nbytes = dataset.nbytes
    except (OSError, KeyError, ValueError, RuntimeError, AttributeError) as error:
        raise UnreadableError(f"refers to {reference[:60]!r}, which cannot be read ({error})") from error
    if not own or kind not in "iuf":
        raise UnreadableError(f"refers to {reference[:60]!r}, which is not an array of numbers stored in that file")
    if size != announced:
        raise UnreadableError(f"announces {announced} numbers in {reference[:60]!r}, which has {size}: it is damaged")
    return path, int(nbytes)


def _dataset(h5py: Any, file: Any, inside: str) -> Any:
    """The dataset at the path `inside` of a file; ValueError for a link on the way, which may lead to another file."""
    node = file
    for step in inside.strip("/").split("/"):
        if not isinstance(node.get(step, getlink=True), h5py.HardLink):
            raise ValueError(f"{step!r} is a link")
        node = node[step]
    if not isinstance(node, h5py.Dataset):
        raise ValueError(f"{inside!r} is not an array")
    return node
