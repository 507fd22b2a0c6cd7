"""How a scheme's names are spelled in C."""

import re

from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._symbols import constants
from fluxforge.scheme.emit._c_text import HELPERS
from fluxforge.scheme.emit._plan import Arguments

_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof"
)
_CALLED = "exp log sin cos tan tanh fabs sqrt pow hypot calloc free size_t linux unix"
_LOCALS = "fluxforge_mesh mesh k l e first second path other count work"
_RESERVED = frozenset(f"{_KEYWORDS} {_CALLED} {_LOCALS}".split())
_MACRO_LIKE = re.compile(r"[A-Z][A-Z0-9_]{2,}")


# An array over slots, beside the value in one of them.
SLOTS = "{}_of"


class CNames:
    """Names in the file of a scheme whose functions all open with `prefix`."""

    def __init__(self, prefix: str, scheme: Scheme) -> None:
        self._constants = constants(scheme.equation)
        self._slots = Arguments.of(scheme).slots
        self._reserved = _RESERVED | {f"{prefix}_{helper}" for helper in HELPERS}

    def spelled(self, name: str) -> str:
        """The name, with an underscore behind it where C, libm or the file already uses it."""
        return f"{name}_" if name in self._reserved or _MACRO_LIKE.fullmatch(name) else name

    def at_cell(self, name: str, cell: str = "P") -> str:
        """A parameter, V, a field or an output in a cell."""
        if name in self._constants:
            return self.spelled(name)
        return f"mesh->V[{cell}]" if name == "V" else f"{self.spelled(name)}[{cell}]"

    def on_path(self, name: str) -> str:
        """A symbol of one path P → N → Q at P, at N or along a leg, N being a cell."""
        field, _, end = name.rpartition("_")
        if end in ("PN", "NQ"):
            table = SLOTS.format(field) if field in self._slots else f"mesh->{field}"
            return f"{table}[{'first' if end == 'PN' else 'second'}]"
        return self.at_cell(field, end)
