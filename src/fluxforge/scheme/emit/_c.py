"""A scheme as a C99 file that needs libm alone: one function, a loop over cells per stage."""

import re
from collections.abc import Mapping
from string import Template

from fluxforge.scheme._scheme import (
    ALL_ENDS,
    GEOMETRY,
    IN_SPACE,
    NEXT,
    Ghost,
    Hop,
    Message,
    Reduction,
    Scheme,
    Stage,
    constants,
)
from fluxforge.scheme.emit._c_text import CALL, CG, HELPERS, INCLUDES, MESH, NEEDS
from fluxforge.scheme.emit._dialects import c_dialect, write_infix
from fluxforge.scheme.emit._implicit import check_solvable, diagonal_stages
from fluxforge.scheme.emit._plan import (
    PATH_VECTOR,
    Arguments,
    all_expressions,
    c_comment,
    find_called_helpers,
    messages_by_hop,
    symbol_names,
    to_identifier,
    wrap_lines,
    write_header,
)

_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof"
)
_CALLED_NAMES = "exp log sin cos tan tanh fabs sqrt pow hypot calloc free size_t linux unix"
_LOCALS = "fluxforge_mesh mesh k l e first second path other count work"
_RESERVED = frozenset(f"{_KEYWORDS} {_CALLED_NAMES} {_LOCALS}".split())
_MACRO_LIKE = re.compile(r"[A-Z][A-Z0-9_]{2,}")
# The name of an array over slots; the name itself is the value in one slot.
SLOTS = "{}_of"


class _Names:
    """Names in the C file of a scheme, whose functions all begin with `prefix`; `slots` are its arrays over slots."""

    def __init__(self, prefix: str, scheme: Scheme) -> None:
        self.constants = set(constants(scheme.equation))
        self.slots = Arguments.of(scheme).slots
        self._reserved = _RESERVED | {f"{prefix}_{helper}" for helper in HELPERS}

    def spell_name(self, name: str) -> str:
        """The name, with an underscore appended if C, libm or the file already uses it."""
        return f"{name}_" if name in self._reserved or _MACRO_LIKE.fullmatch(name) else name

    def at_cell(self, name: str, cell: str = "P") -> str:
        """A parameter, V, a field or an output in a cell."""
        if name in self.constants:
            return self.spell_name(name)
        return f"mesh->V[{cell}]" if name == "V" else f"{self.spell_name(name)}[{cell}]"

    def on_path(self, name: str) -> str:
        """A symbol of one path P → N → Q at P, at N or along a leg, N being a cell."""
        field, _, end = name.rpartition("_")
        if end in ("PN", "NQ"):
            table = SLOTS.format(field) if field in self.slots else f"mesh->{field}"
            return f"{table}[{'first' if end == 'PN' else 'second'}]"
        return self.at_cell(field, end)


_START_VALUES = {Reduction.SUM: "0.0", Reduction.MIN: "HUGE_VAL", Reduction.MAX: "-HUGE_VAL"}


class _Loops:
    """Writes the loop over cells of each stage."""

    def __init__(self, scheme: Scheme, prefix: str, names: _Names) -> None:
        self._prefix, self._names = prefix, names
        self._dialect = c_dialect(prefix)
        self._rules = scheme.ghost_rules() | {"S": Ghost.ZERO}
        self._rules |= dict.fromkeys(Arguments.of(scheme).cells, Ghost.OWNER)

    def write_stage(self, stage: Stage) -> list[str]:
        """The lines of the loop over cells that evaluates a stage."""
        lines: list[str] = []
        own: dict[str, str] = {}
        write = {Hop.EDGE: self._edges, Hop.PATH: self._paths, Hop.RING: self._ring, Hop.LINE: self._edges}
        for hop, messages in messages_by_hop(stage).items():
            own |= {name: self._names.spell_name(name) for name in messages}
            lines += [f"double {own[name]} = {_START_VALUES[message.reduction]};" for name, message in messages.items()]
            lines += write[hop](messages)
        for name, output in stage.outputs.items():
            text = write_infix(output.expression, self._dialect, lambda s: own.get(s) or self._names.at_cell(s))
            lines.append(_statement(f"{self._names.spell_name(name)}[P] =", text))
        return _loop("size_t P = 0; P < mesh->cells; P++", lines)

    def _varying_names(self, messages: Mapping[str, Message]) -> set[str]:
        """The symbols of messages that differ from slot to slot."""
        return symbol_names(message.expression for message in messages.values()) - self._names.constants

    def _edges(self, messages: Mapping[str, Message]) -> list[str]:
        lines = ["const size_t e = P*mesh->slots + k;", "if (!mesh->used[e]) continue;"]
        names = self._varying_names(messages)
        for end, table in (("N", "node"), ("B", "behind"), ("F", "ahead")):
            if any(name.endswith(f"_{end}") for name in names):
                lines.append(f"const size_t {end} = (size_t)mesh->{table}[e];")
        lines += [f"const double {name} = {self._on_edge(name)};" for name in sorted(names)]
        return _loop("size_t k = 0; k < mesh->slots; k++", lines + self._add_messages(messages))

    def _on_edge(self, name: str) -> str:
        field, _, end = name.rpartition("_")
        if name in GEOMETRY[Hop.EDGE]:
            return f"mesh->{name}[e]"
        if name in self._names.slots:
            return f"{SLOTS.format(name)}[e]"
        return self._names.at_cell(field) if end == "P" else self._at_node(field, end)

    def _paths(self, messages: Mapping[str, Message]) -> list[str]:
        names = self._varying_names(messages)
        lines = ["const size_t second = N*mesh->slots + l;", "if (!mesh->used[second]) continue;"]
        if any(name.endswith("_Q") for name in names):
            lines.append("const size_t Q = (size_t)mesh->node[second];")
        for name in sorted(names):
            field, _, end = name.rpartition("_")
            value = self._at_node(field, end) if end == "Q" else self._names.on_path(name)
            lines.append(f"const double {name} = {value};")
        outer = [
            "const size_t first = P*mesh->slots + k;",
            "if (!mesh->used[first] || (size_t)mesh->node[first] >= mesh->cells) continue;",
            "const size_t N = (size_t)mesh->node[first];",
        ]
        inner = _loop("size_t l = 0; l < mesh->slots; l++", lines + self._add_messages(messages))
        return _loop("size_t k = 0; k < mesh->slots; k++", outer + inner)

    def _ring(self, messages: Mapping[str, Message]) -> list[str]:
        names = sorted(self._varying_names(messages))
        means = [name for name in names if name.rpartition("_")[2] in ("N", "PN", "NQ")]
        lines = [f"if (!{self._prefix}_in_ring(mesh, P, path)) continue;"]
        if means or any(name.endswith("_Q") for name in names):
            lines.append(f"const size_t Q = {self._prefix}_end(mesh, P, path);")
        lines += self._means(means) if means else []
        lines += _write_path_vector(names)
        for name in names:
            field, _, end = name.rpartition("_")
            if end in ("P", "Q"):
                lines.append(f"const double {name} = {self._names.at_cell(field, end)};")
        return _loop("size_t path = 0; path < mesh->slots*mesh->slots; path++", lines + self._add_messages(messages))

    def _means(self, means: list[str]) -> list[str]:
        """The lines that compute means over the paths that end in Q: sums, divided by the number of paths."""
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

    def _add_messages(self, messages: Mapping[str, Message]) -> list[str]:
        """The lines that add each message to its sum, or compare it with the least or largest value so far."""
        lines = []
        for name, message in messages.items():
            target, text = self._names.spell_name(name), write_infix(message.expression, self._dialect, self._symbol)
            if message.reduction is Reduction.SUM:
                lines.append(_statement(f"{target} +=", text))
            else:
                lines.append(_statement(f"{target} =", f"{self._prefix}_{message.reduction}({target}, {text})"))
        return lines

    def _symbol(self, name: str) -> str:
        return self._names.spell_name(name) if name in self._names.constants else name

    def _at_node(self, field: str, end: str) -> str:
        if field == "V":
            return f"{self._prefix}_volume(mesh, {end})"
        return f"{self._prefix}_{self._rules[field]}(mesh, {self._names.spell_name(field)}, {end})"


def _write_path_vector(names: list[str]) -> list[str]:
    """The lines that compute the vector from P to Q along the path, and its length, as far as `names` need them."""
    parts = [part for part in PATH_VECTOR if part in names or "delta_PQ" in names]
    if not parts:
        return []
    lines = [
        "const size_t first = P*mesh->slots + path/mesh->slots;",
        "const size_t second = (size_t)mesh->node[first]*mesh->slots + path%mesh->slots;",
        *(f"const double {part} = {_along_path(f'd_{part[-1]}')};" for part in parts),
    ]
    distance = "const double delta_PQ = hypot(hypot(d_PQ_x, d_PQ_y), d_PQ_z);"
    return [*lines, distance] if "delta_PQ" in names else lines


def _along_path(table: str) -> str:
    """The C expression of the sum over both legs; a mesh in the plane has no third components."""
    total = f"mesh->{table}[first] + mesh->{table}[second]"
    return total if table not in IN_SPACE else f"mesh->{table} ? {total} : 0.0"


def _statement(start: str, text: str) -> str:
    if len(start) + len(text) <= 100:
        return f"{start} {text};"
    return f"{start}\n{wrap_lines(text, first='    ', rest='    ', width=100)};"


def _loop(header: str, lines: list[str]) -> list[str]:
    return [f"for ({header}) {{", *(f"    {line}" for text in lines for line in text.split("\n")), "}"]


_FIELDS = "const double *T, const double *S, double *T_new"


def emit_c(scheme: Scheme) -> str:
    """C99 source with `int NAME_step(const fluxforge_mesh *, double dt, …, const double *T, …)`."""
    check_solvable(scheme)
    prefix = to_identifier(scheme.name)
    functions = _write_implicit(scheme, prefix) if scheme.implicit else [_function(scheme, f"int {prefix}_step")]
    code = "\n".join(functions)
    helpers = [_fill_names(HELPERS[name], scheme) for name in find_called_helpers(code, HELPERS, NEEDS, f"{prefix}_")]
    return "\n".join([_comment(scheme), INCLUDES, MESH, *helpers, *functions])


def _function(scheme: Scheme, opening: str) -> str:
    return _write_function(scheme, scheme.stages, prefix=to_identifier(scheme.name), opening=opening, fields=_FIELDS)


def _write_implicit(scheme: Scheme, prefix: str) -> list[str]:
    diagonal = _write_function(
        scheme,
        diagonal_stages(scheme),
        prefix=prefix,
        opening=f"/* The diagonal of F'. */\nstatic int {prefix}_diagonal",
        fields="double *T_new",
    )
    solver = CG.replace("$theta", f"({write_infix(scheme.theta, c_dialect(prefix))})")
    return [_function(scheme, f"/* F(T). */\nstatic int {prefix}_explicit"), diagonal, _fill_names(solver, scheme)]


def _fill_names(text: str, scheme: Scheme) -> str:
    text = re.sub(r"\$name_", "${name}_", text)
    prefix = to_identifier(scheme.name)
    return Template(text).substitute(name=prefix, **_list_arguments(scheme, _Names(prefix, scheme)))


def _comment(scheme: Scheme) -> str:
    answer = "0, 1 if memory runs out, 2 if conjugate gradients fail" if scheme.implicit else "0, 1 if memory runs out"
    several = len(scheme.stages) > 1 or scheme.implicit
    if Hop.LINE in scheme.hops():
        answer, several = answer.replace("runs out", "runs out or the mesh has no lines of cells"), True
    call = _fill_names(CALL.replace("$answer", answer if several else "0"), scheme)
    call += Arguments.of(scheme).words(SLOTS)
    text = write_header(scheme, call=call, nothing="NULL", note="Cells do not depend on each other within a stage.")
    return "/* " + "\n".join(f" * {line}".rstrip() for line in c_comment(text).split("\n"))[3:] + "\n */"


def _write_function(scheme: Scheme, stages: tuple[Stage, ...], *, prefix: str, opening: str, fields: str) -> str:
    """The function's text; `opening` is what stands before its brackets, `fields` its last parameters."""
    used = symbol_names(all_expressions(stages))
    names = _Names(prefix, scheme)
    outputs = [names.spell_name(name) for stage in stages for name in stage.outputs if name != NEXT]
    taken = Arguments.of(scheme)
    # α before Δt, then arrays: the order that these casts have had in every emitted file.
    given = {name: names.spell_name(name) for name in (*constants(scheme.equation), *taken.cells)}
    given |= {name: SLOTS.format(name) for name in taken.slots}
    given |= {name: name for name in ("T", "S") if f"*{name}," in fields}
    body = [f"(void){written};" for name, written in given.items() if not _mentions(name, used)]
    if any(message.hop is Hop.LINE for stage in stages for message in stage.messages.values()):
        body.append("if (mesh->behind == NULL || mesh->ahead == NULL) return 1;")
    body += _workspace(outputs)
    loops = _Loops(scheme, prefix, names)
    for number, stage in enumerate(stages, start=1):
        body += [f"/* Stage {number} */"] if len(stages) > 1 else []
        body += loops.write_stage(stage)
    body += ["free(work);"] if outputs else []
    lines = [f"    {line}" for text in (*body, "return 0;") for line in text.split("\n")]
    typed = _list_arguments(scheme, names)["typed"]
    head = f"{opening}(const fluxforge_mesh *mesh, {typed},\n    {fields})"
    return "\n".join([head, "{", *lines, "}", ""])


def _list_arguments(scheme: Scheme, names: _Names) -> dict[str, str]:
    """The parameters of a step as they are passed on (`arguments`) and as they are declared (`typed`)."""
    parameters = Arguments.of(scheme)
    numbers = [names.spell_name(name) for name in parameters.constants]
    arrays = [*map(names.spell_name, parameters.cells), *map(SLOTS.format, parameters.slots)]
    typed = [*(f"double {name}" for name in numbers), *(f"const double *{name}" for name in arrays)]
    return {"arguments": ", ".join([*numbers, *arrays]), "typed": ", ".join(typed)}


def _mentions(name: str, used: set[str]) -> bool:
    return bool(used & {name, *(f"{name}_{end}" for end in (*ALL_ENDS, "PN", "NQ"))})


def _workspace(outputs: list[str]) -> list[str]:
    if not outputs:
        return []
    places = ["work", *(f"{before} + mesh->cells" for before in outputs)]
    return [
        f"double *const work = calloc({len(outputs)}*mesh->cells + 1, sizeof *work);",
        "if (work == NULL) return 1;",
        *(f"double *const {name} = {place};" for name, place in zip(outputs, places, strict=False)),
    ]
