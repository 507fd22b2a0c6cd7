"""The arrays of a .vtu file: text, base64 or raw bytes, in the element or appended, packed or not."""

import binascii
import lzma
import re
import zlib
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from jaxtyping import Num, UInt

from fluxforge.mesh.files._budget import ALLOWANCE, Budget
from fluxforge.mesh.files._numbers import UnreadableError, text_numbers

HEADERS = {"UInt32": "u4", "UInt64": "u8"}
KINDS = {
    f"{name}{bits}": f"{code}{bits // 8}" for name, code in (("Int", "i"), ("UInt", "u")) for bits in (8, 16, 32, 64)
}
KINDS |= {"Float32": "f4", "Float64": "f8"}
PACKERS = ("vtkZLibDataCompressor", "vtkLZMADataCompressor")
APPENDED, CLOSING = b"<AppendedData", b"</AppendedData>"
RAW = re.compile(rb"""\sencoding\s*=\s*["']raw["']""")
MOST_COMPONENTS = 1_000


def appended_data(data: bytes) -> tuple[bytes | None, int]:
    """The bytes of <AppendedData encoding="raw"> (None if there is none), and where that element's content begins."""
    place = data.find(APPENDED)
    end = data.find(b">", place) if place >= 0 else -1
    if end < 0 or RAW.search(data, place, end) is None:
        return None, len(data)
    begin, close = data.find(b"_", end), data.rfind(CLOSING)
    if begin < 0 or close < begin:
        raise UnreadableError("has appended data that do not end: it is damaged or cut short")
    return data[begin + 1 : close], end + 1


class Stored(NamedTuple):
    """An array as it is stored: `text` is base64 unless `raw`, and the array begins with a header at `place`."""

    text: bytes
    place: int
    raw: bool


class VtuArrays:
    """Reads the <DataArray> elements of one document."""

    def __init__(self, tree: ElementTree.Element, raw: bytes | None) -> None:
        header, self.packer = tree.get("header_type", "UInt32"), tree.get("compressor")
        if header not in HEADERS:
            raise UnreadableError(f"has header_type {header!r:.40}; it should be UInt32 or UInt64")
        if self.packer is not None and self.packer not in PACKERS:
            raise UnreadableError(
                f"is packed by {self.packer!r:.60}, which cannot be read: save it with zlib or uncompressed"
            )
        self.order = ">" if tree.get("byte_order") == "BigEndian" else "<"
        self.header = np.dtype(self.order + HEADERS[header])
        self.raw = raw is not None
        text = (tree.findtext("AppendedData") or "").strip().removeprefix("_").encode()
        self.appended = text if raw is None else raw

    def charge(self, element: ElementTree.Element, budget: Budget) -> None:
        """Charge what an array says it takes, header included; more than the file holds is refused."""
        stored = self._stored(element)
        if stored is None:
            return
        count = int(self._words(stored, 1)[0])
        held = len(stored.text) - stored.place
        if count > held:
            what = "bytes" if self.packer is None else "packed blocks"
            raise UnreadableError(f"announces an array of {count} {what} and has {held} bytes left: it is cut short")
        if self.packer is None:
            budget.spend(count)
        elif count:
            budget.spend(_announced(self._words(stored, 3)) + (3 + count) * self.header.itemsize)

    def read(self, element: ElementTree.Element) -> Num[np.ndarray, "..."]:
        """The numbers of an array that has been charged, in rows if it has several components."""
        kind = KINDS.get(element.get("type", ""))
        if kind is None:
            raise UnreadableError(f"has an array of type {element.get('type')!r:.40}, which is unknown")
        stored = self._stored(element)
        if stored is None:
            values = text_numbers((element.text or "").encode(), whole=kind[0] in "iu").values
        else:
            content = self._plain(stored) if self.packer is None else self._unpacked(stored)
            if len(content) % np.dtype(kind).itemsize:
                raise UnreadableError(
                    f"has an array of {len(content)} bytes, which are no {element.get('type')} numbers"
                )
            values = np.frombuffer(content, self.order + kind).astype(kind)
        return _in_rows(values, element)

    def _stored(self, element: ElementTree.Element) -> Stored | None:
        match element.get("format", "ascii"):
            case "ascii":
                return None
            case "binary":
                return Stored(b"".join((element.text or "").encode().split()), 0, raw=False)
            case "appended":
                offset = element.get("offset", "").strip()
                if not (offset.isascii() and offset.isdigit()) or len(offset) > 18:
                    raise UnreadableError(f"has an array at offset {offset[:40]!r}, not a count")
                return Stored(self.appended, int(offset), self.raw)
            case other:
                raise UnreadableError(f"has an array in format {other!r:.40}; ascii, binary and appended can be read")

    def _words(self, stored: Stored, count: int) -> UInt[np.ndarray, " count"]:
        """The first words of an array's header."""
        content = _decoded(stored, 0, count * self.header.itemsize)
        return np.frombuffer(content, self.header, count)

    def _plain(self, stored: Stored) -> bytes:
        """An array that is not packed: its length in bytes, then the bytes, encoded together or each by itself."""
        word = self.header.itemsize
        length = int(self._words(stored, 1)[0])
        if stored.raw:
            return _decoded(stored, word, length)
        together = len(_base64(stored.text[stored.place : stored.place + _characters(word)])) > word
        if together or not length:
            return _decoded(stored, 0, word + length)[word:]
        return _decoded(stored, _characters(word), length)

    def _unpacked(self, stored: Stored) -> bytes:
        """The blocks of a packed array, none longer than it announces."""
        count = int(self._words(stored, 1)[0])
        if not count:
            return b""
        words = self._words(stored, 3 + count)
        left, size = _announced(words), words.itemsize * (3 + count)
        lengths = words[3:].tolist()
        packed = memoryview(_decoded(stored, size if stored.raw else _characters(size), sum(lengths)))
        blocks, place = [], 0
        for length in lengths:
            blocks.append(_unpack(packed[place : place + length], str(self.packer), left))
            place, left = place + length, left - len(blocks[-1])
        return b"".join(blocks)


def _announced(words: UInt[np.ndarray, " words"]) -> int:
    """The bytes of a packed array by its header: how many blocks, their length, and that of the last (0: the same)."""
    count, size, last = (int(word) for word in words[:3])
    return (count - 1) * size + (last or size)


def _decoded(stored: Stored, skip: int, count: int) -> bytes:
    """So many bytes of an array, `skip` bytes or characters after its beginning."""
    begin = stored.place + skip
    end = begin + (count if stored.raw else _characters(count))
    if end > len(stored.text) + (0 if stored.raw else 2):
        held = max(len(stored.text) - begin, 0)
        raise UnreadableError(f"announces an array of {count} bytes and has {held} left: it is damaged or cut short")
    content = stored.text[begin:end]
    content = (content if stored.raw else _base64(content))[:count]
    if len(content) < count:
        raise UnreadableError("has an array that is damaged or cut short")
    return content


def _characters(count: int) -> int:
    """How many characters of base64 so many bytes take."""
    return -(-count // 3) * 4


def _base64(text: bytes) -> bytes:
    try:
        return binascii.a2b_base64(text)
    except binascii.Error as error:
        raise UnreadableError(f"has an array that is not base64 ({error})") from error


def _unpack(block: memoryview, packer: str, most: int) -> bytes:
    """A block, once unpacked, of at most `most` bytes."""
    unpacker = zlib.decompressobj() if packer == PACKERS[0] else lzma.LZMADecompressor(memlimit=ALLOWANCE)
    try:
        # One byte more tells a block that ends from one that goes on.
        content = unpacker.decompress(block, most + 1)
    except (zlib.error, lzma.LZMAError) as error:
        raise UnreadableError(f"has an array that cannot be unpacked ({error}): it is damaged") from error
    if len(content) > most:
        raise UnreadableError("has an array that unpacks to far more than it announces: it is damaged, or a trap")
    if not unpacker.eof:
        raise UnreadableError("has an array whose packed blocks are cut short")
    return content


def _in_rows(values: Num[np.ndarray, " n"], element: ElementTree.Element) -> Num[np.ndarray, "..."]:
    """Rows of as many numbers as the array has components; without that word a plain run of numbers."""
    word = (element.get("NumberOfComponents") or "1").strip()
    columns = int(word) if word.isascii() and word.isdigit() and len(word) < 9 else 0
    if not 0 < columns <= MOST_COMPONENTS or len(values) % columns:
        raise UnreadableError(f"has an array of {len(values)} numbers in {word[:40]!r} components: it is damaged")
    return values if columns == 1 else values.reshape(-1, columns)
