"""The loop over the cells of one stage, in C, and the names in it."""

import re
from collections.abc import Mapping

import sympy as sp

from fluxforge.scheme._scheme import Scheme, Stage
from fluxforge.scheme._symbols import GEOMETRY, IN_SPACE, Ghost, Hop, Reduction, constants
from fluxforge.scheme.emit._c_text import HELPERS
from fluxforge.scheme.emit._plan import (
    Arguments,
    names,
    reductions,
    sums,
)
from fluxforge.scheme.emit._print_infix import c_dialect, infix
from fluxforge.scheme.emit._words import wrap_lines

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

    def spell_name(self, name: str) -> str:
        """The name, with an underscore behind it where C, libm or the file already uses it."""
        return f"{name}_" if name in self._reserved or _MACRO_LIKE.fullmatch(name) else name

    def at_cell(self, name: str, cell: str = "P") -> str:
        """A parameter, V, a field or an output in a cell."""
        if name in self._constants:
            return self.spell_name(name)
        return f"mesh->V[{cell}]" if name == "V" else f"{self.spell_name(name)}[{cell}]"

    def on_path(self, name: str) -> str:
        """A symbol of one path P → N → Q at P, at N or along a leg, N being a cell."""
        field, _, end = name.rpartition("_")
        if end in ("PN", "NQ"):
            table = SLOTS.format(field) if field in self._slots else f"mesh->{field}"
            return f"{table}[{'first' if end == 'PN' else 'second'}]"
        return self.at_cell(field, end)


_APART = ("d_PQ_x", "d_PQ_y", "d_PQ_z")
_START = {Reduction.SUM: "0.0", Reduction.MIN: "HUGE_VAL", Reduction.MAX: "-HUGE_VAL"}


class CStage:
    """Writes the loop over cells of one stage."""

    def __init__(self, scheme: Scheme, prefix: str) -> None:
        self._prefix = prefix
        self._names = CNames(prefix, scheme)
        self._constants = set(constants(scheme.equation))
        self._slots = Arguments.of(scheme).slots
        self._dialect = c_dialect(prefix)
        self._reductions: dict[str, Reduction] = {}
        self._rules = scheme.ghost_rules() | {"S": Ghost.ZERO}
        self._rules |= dict.fromkeys(Arguments.of(scheme).cells, Ghost.OWNER)

    def of(self, stage: Stage) -> list[str]:
        """The lines of the loop."""
        lines = []
        self._reductions = reductions(stage)
        write = {Hop.EDGE: self._edges, Hop.PATH: self._paths, Hop.RING: self._ring, Hop.LINE: self._edges}
        for hop, messages in sums(stage).items():
            lines += [f"double {self._names.spell_name(name)} = {_START[self._reductions[name]]};" for name in messages]
            lines += write[hop](messages)
        own = {name: self._names.spell_name(name) for messages in sums(stage).values() for name in messages}
        for name, output in stage.outputs.items():
            text = infix(output.expression, self._dialect, lambda s: own.get(s) or self._names.at_cell(s))
            lines.append(_statement(f"{self._names.spell_name(name)}[P] =", text))
        return _loop("size_t P = 0; P < mesh->cells; P++", lines)

    def _edges(self, messages: Mapping[str, sp.Expr]) -> list[str]:
        lines = ["const size_t e = P*mesh->slots + k;", "if (!mesh->used[e]) continue;"]
        found = names(messages.values())
        for end, table in (("N", "node"), ("B", "behind"), ("F", "ahead")):
            if any(name.endswith(f"_{end}") for name in found):
                lines.append(f"const size_t {end} = (size_t)mesh->{table}[e];")
        for name in sorted(found - self._constants):
            lines.append(f"const double {name} = {self._on_edge(name)};")
        return _loop("size_t k = 0; k < mesh->slots; k++", lines + self._add_messages(messages))

    def _on_edge(self, name: str) -> str:
        field, _, end = name.rpartition("_")
        if name in GEOMETRY[Hop.EDGE]:
            return f"mesh->{name}[e]"
        if name in self._slots:
            return f"{SLOTS.format(name)}[e]"
        return self._names.at_cell(field) if end == "P" else self._at_node(field, end)

    def _paths(self, messages: Mapping[str, sp.Expr]) -> list[str]:
        found = names(messages.values()) - self._constants
        lines = ["const size_t second = N*mesh->slots + l;", "if (!mesh->used[second]) continue;"]
        if any(name.endswith("_Q") for name in found):
            lines.append("const size_t Q = (size_t)mesh->node[second];")
        for name in sorted(found):
            field, _, end = name.rpartition("_")
            lines.append(
                f"const double {name} = {self._at_node(field, end) if end == 'Q' else self._names.on_path(name)};"
            )
        outer = [
            "const size_t first = P*mesh->slots + k;",
            "if (!mesh->used[first] || (size_t)mesh->node[first] >= mesh->cells) continue;",
            "const size_t N = (size_t)mesh->node[first];",
        ]
        inner = _loop("size_t l = 0; l < mesh->slots; l++", lines + self._add_messages(messages))
        return _loop("size_t k = 0; k < mesh->slots; k++", outer + inner)

    def _ring(self, messages: Mapping[str, sp.Expr]) -> list[str]:
        found = sorted(names(messages.values()) - self._constants)
        means = [name for name in found if name.rpartition("_")[2] in ("N", "PN", "NQ")]
        lines = [f"if (!{self._prefix}_in_ring(mesh, P, path)) continue;"]
        if means or any(name.endswith("_Q") for name in found):
            lines.append(f"const size_t Q = {self._prefix}_end(mesh, P, path);")
        lines += self._means(means) if means else []
        lines += _apart(found)
        for name in found:
            field, _, end = name.rpartition("_")
            if end in ("P", "Q"):
                lines.append(f"const double {name} = {self._names.at_cell(field, end)};")
        return _loop("size_t path = 0; path < mesh->slots*mesh->slots; path++", lines + self._add_messages(messages))

    def _means(self, means: list[str]) -> list[str]:
        """Σ over the paths that end in Q, divided by their number."""
        lines = [
            f"if ({self._prefix}_end(mesh, P, other) != Q) continue;",
            "const size_t first = P*mesh->slots + other/mesh->slots;",
        ]
        if any(name.endswith(("_N", "_NQ")) for name in means):
            lines.append("const size_t N = (size_t)mesh->node[first];")
        if any(name.endswith("_NQ") for name in means):
            lines.append("const size_t second = N*mesh->slots + other%mesh->slots;")
        lines += [f"{name} += {self._names.on_path(name)};" for name in means]
        return [
            f"double count = 0.0, {', '.join(f'{name} = 0.0' for name in means)};",
            *_loop("size_t other = 0; other < mesh->slots*mesh->slots; other++", [*lines, "count += 1.0;"]),
            *(f"{name} /= count;" for name in means),
        ]

    def _add_messages(self, messages: Mapping[str, sp.Expr]) -> list[str]:
        return [
            self._reduce_message(
                self._names.spell_name(name), self._reductions[name], infix(expression, self._dialect, self._symbol)
            )
            for name, expression in messages.items()
        ]

    def _reduce_message(self, name: str, reduction: Reduction, text: str) -> str:
        """A message added to a sum, or compared with the least or largest so far."""
        if reduction is Reduction.SUM:
            return _statement(f"{name} +=", text)
        return _statement(f"{name} =", f"{self._prefix}_{reduction}({name}, {text})")

    def _symbol(self, name: str) -> str:
        return self._names.spell_name(name) if name in self._constants else name

    def _at_node(self, field: str, end: str) -> str:
        if field == "V":
            return f"{self._prefix}_volume(mesh, {end})"
        return f"{self._prefix}_{self._rules[field]}(mesh, {self._names.spell_name(field)}, {end})"


def _apart(found: list[str]) -> list[str]:
    """The vector from P to Q, along the path."""
    parts = [part for part in _APART if part in found or "delta_PQ" in found]
    if not parts:
        return []
    lines = [
        "const size_t first = P*mesh->slots + path/mesh->slots;",
        "const size_t second = (size_t)mesh->node[first]*mesh->slots + path%mesh->slots;",
        *(f"const double {part} = {_along_path(f'd_{part[-1]}')};" for part in parts),
    ]
    distance = "const double delta_PQ = hypot(hypot(d_PQ_x, d_PQ_y), d_PQ_z);"
    return [*lines, distance] if "delta_PQ" in found else lines


def _along_path(table: str) -> str:
    """The sum over both legs; a mesh in the plane has no third components."""
    total = f"mesh->{table}[first] + mesh->{table}[second]"
    return total if table not in IN_SPACE else f"mesh->{table} ? {total} : 0.0"


def _statement(start: str, text: str) -> str:
    if len(start) + len(text) <= 100:
        return f"{start} {text};"
    return f"{start}\n{wrap_lines(text, first='    ', rest='    ', width=100)};"


def _loop(header: str, lines: list[str]) -> list[str]:
    return [f"for ({header}) {{", *(f"    {line}" for text in lines for line in text.split("\n")), "}"]
