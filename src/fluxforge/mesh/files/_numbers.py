"""Numbers from a file, in text or binary, that never trust a count: what is not there cannot be taken."""

import abc
import warnings

import numpy as np
from jaxtyping import Float, Int, Num


class UnreadableError(Exception):
    """Why a file cannot be read, without its path: the public reader turns this into a MeshReadError."""


class AbstractNumbers(abc.ABC):
    """A run of numbers, taken from the front. Taking more than there are is an UnreadableError, not an allocation."""

    @abc.abstractmethod
    def integers(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` numbers, which the format writes as int."""

    @abc.abstractmethod
    def sizes(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` numbers, which the format writes as size_t: counts, and numbers of nodes and elements."""

    @abc.abstractmethod
    def floats(self, count: int) -> Float[np.ndarray, " count"]:
        """The next `count` numbers, which the format writes as double."""

    def size(self) -> int:
        """The next number, a count."""
        return int(self.sizes(1)[0])


class TextNumbers(AbstractNumbers):
    """Numbers separated by white space."""

    def __init__(self, values: Num[np.ndarray, " n"]) -> None:
        self.values, self.taken = values, 0

    def integers(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` numbers, if they are whole."""
        values = self._take(count)
        if values.dtype.kind == "i":
            return values
        # Beyond 2⁵³ a double no longer tells neighbouring whole numbers apart.
        whole = (np.abs(values) < 2.0**53) & (values == np.floor(values))
        if not whole.all():
            raise UnreadableError(f"has {values[~whole][0]:g} where a whole number should stand")
        return values.astype(np.int64)

    def sizes(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` numbers, if they are whole and not negative."""
        values = self.integers(count)
        if (values < 0).any():
            raise UnreadableError(
                f"has {values[values < 0][0]} where a count or the number of a node or element should stand"
            )
        return values

    def floats(self, count: int) -> Float[np.ndarray, " count"]:
        """The next `count` numbers."""
        return self._take(count).astype(np.float64)

    def rest(self) -> int:
        """How many numbers have not been taken."""
        return len(self.values) - self.taken

    def _take(self, count: int) -> Num[np.ndarray, " count"]:
        if count > self.rest():
            raise _too_few(count, self.rest())
        self.taken += count
        return self.values[self.taken - count : self.taken]


class BinaryNumbers(AbstractNumbers):
    """Numbers as bytes; `order` is "<" or ">", `size_bytes` the length of a size_t."""

    def __init__(self, data: bytes, place: int, *, order: str, size_bytes: int = 8) -> None:
        self.data, self.place, self.order, self.size_bytes = data, place, order, size_bytes

    def integers(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` four-byte integers."""
        return self.take(np.dtype(self.order + "i4"), count).astype(np.int64)

    def sizes(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` unsigned integers."""
        values = self.take(np.dtype(f"{self.order}u{self.size_bytes}"), count)
        if (values > np.uint64(2**53)).any():
            raise UnreadableError(f"has {values.max()} where a count or the number of a node or element should stand")
        return values.astype(np.int64)

    def floats(self, count: int) -> Float[np.ndarray, " count"]:
        """The next `count` doubles."""
        return self.take(np.dtype(self.order + "f8"), count).astype(np.float64)

    def take(self, kind: np.dtype, count: int) -> np.ndarray:
        """The next `count` items of a dtype."""
        available = (len(self.data) - self.place) // kind.itemsize
        if count > available:
            raise _too_few(count, available)
        values = np.frombuffer(self.data, kind, count, self.place)
        self.place += count * kind.itemsize
        return values


def _too_few(wanted: int, available: int) -> UnreadableError:
    return UnreadableError(
        f"announces {wanted} more numbers where the file holds {available}: it is damaged or cut short"
    )


def text_numbers(text: bytes, *, whole: bool = False) -> TextNumbers:
    """The numbers of a text; anything else in it is an UnreadableError."""
    kind = np.int64 if whole else np.float64
    # NumPy reads a blank text as one number, −1.
    if not text or text.isspace():
        return TextNumbers(np.empty(0, kind))
    with warnings.catch_warnings():
        # Older NumPy warns where newer raises.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return TextNumbers(np.fromstring(text, dtype=kind, sep=" "))
        except (ValueError, DeprecationWarning):
            raise UnreadableError(f"holds something that is not a {'whole ' * whole}number") from None
