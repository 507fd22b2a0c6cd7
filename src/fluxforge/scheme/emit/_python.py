"""A scheme as a Python module on arrays, for NumPy and for JAX."""

import keyword
from dataclasses import dataclass
from string import Template

import sympy as sp

from fluxforge.scheme._scheme import GEOMETRY, IN_SPACE, NEXT, Ghost, Hop, Message, Reduction, Scheme, Stage
from fluxforge.scheme.emit._dialects import PLAIN, array_dialect, write_infix
from fluxforge.scheme.emit._implicit import check_solvable, diagonal_stages
from fluxforge.scheme.emit._plan import (
    PATH_VECTOR,
    Arguments,
    all_expressions,
    find_called_helpers,
    messages_by_hop,
    symbol_names,
    wrap_lines,
    write_header,
)
from fluxforge.scheme.emit._python_text import CALL, CG_JAX, CG_NUMPY, HELPERS, MESH, NEEDS

_RESERVED = {"np", "jnp", "jax", "mesh", "k", "l", "exists", "ring", "same", "step", "Mesh", "NamedTuple"}
_WIDTH = 108
_TABLES = {Hop.PATH: ("N, Q, k, l, exists", "_paths(mesh)"), Hop.RING: ("N, Q, k, l, ring, same", "_ring(mesh)")}
_USED = {Hop.EDGE: "mesh.used", Hop.PATH: "exists", Hop.RING: "ring", Hop.LINE: "mesh.used"}
_NODES = {"N": "mesh.node", "B": "mesh.behind", "F": "mesh.ahead"}
_REDUCE = {Reduction.SUM: "_sum", Reduction.MIN: "_least", Reduction.MAX: "_largest"}


@dataclass(frozen=True)
class Flavour:
    """Texts that depend on the array library: its name in code, imports, a note on use, and the opening of a step."""

    np: str
    array: str
    imports: str
    note: str
    decorator: str
    entry: tuple[str, ...]
    solver: str


def _write_module(scheme: Scheme, flavour: Flavour) -> str:
    """The module's whole text."""
    check_solvable(scheme)
    arguments = _list_parameters(scheme)
    if scheme.implicit:
        explicit, diagonal = _Function(scheme, flavour), _Function(scheme, flavour)
        functions = [
            explicit.write(scheme.stages, f"_explicit(T, S, mesh, {arguments})", "F(T)"),
            diagonal.write(diagonal_stages(scheme), f"_diagonal(mesh, {arguments})", "The diagonal of F'"),
            Template(flavour.solver).substitute(theta=write_infix(scheme.theta, PLAIN), arguments=arguments),
        ]
    else:
        doc = "T one time step later."
        functions = [
            _Function(scheme, flavour).write(scheme.stages, f"step(T, S, mesh, {arguments})", doc, flavour.entry)
        ]
    words = {"np": flavour.np, "Array": flavour.array}
    called = find_called_helpers("\n".join(functions), HELPERS, NEEDS)
    helpers = [Template(HELPERS[name]).substitute(words) for name in called]
    mesh = Template(MESH).substitute(words)
    return "\n\n".join([f"{_docstring(scheme, flavour)}\n{flavour.imports}\n", mesh, *helpers, *functions])


def _docstring(scheme: Scheme, flavour: Flavour) -> str:
    call = Template(CALL).substitute(arguments=_list_parameters(scheme)) + Arguments.of(scheme).words()
    text = write_header(scheme, call=call, nothing="None", note=flavour.note)
    return '"""' + text.replace("\\", "\\\\").replace('"""', "'''") + '\n"""\n'


def _list_parameters(scheme: Scheme) -> str:
    """The parameters of a step, as its signature names them."""
    return ", ".join(map(_spell_name, Arguments.of(scheme).names))


def _spell_name(name: str) -> str:
    """The name, with an underscore appended if Python or the module already uses it."""
    return f"{name}_" if keyword.iskeyword(name) or keyword.issoftkeyword(name) or name in _RESERVED else name


class _Function:
    """Writes one function; records which local name stands for which value, so that nothing is gathered twice."""

    def __init__(self, scheme: Scheme, flavour: Flavour) -> None:
        self._flavour = flavour
        self._arguments = Arguments.of(scheme)
        self._constants = set(self._arguments.constants)
        self._dialect = array_dialect(flavour.np)
        self._rules = scheme.ghost_rules() | {"S": Ghost.ZERO} | dict.fromkeys(self._arguments.cells, Ghost.OWNER)
        self._lines: list[str] = []
        self._held: dict[str, str] = {}

    def write(self, stages: tuple[Stage, ...], signature: str, doc: str, entry: tuple[str, ...] = ()) -> str:
        """The function's text."""
        self._lines.extend(entry)
        present = symbol_names(all_expressions(stages))
        here = [name for name in (*GEOMETRY[Hop.EDGE], "V") if name in present]
        self._held |= {name: f"mesh.{name}" for name in here}
        if here:
            self._lines.append(f"{', '.join(here)} = {', '.join(self._held[name] for name in here)}")
        for number, stage in enumerate(stages, start=1):
            if len(stages) > 1:
                self._lines.append(f"# Stage {number}")
            self._write_stage(stage)
        body = "\n".join(f"    {line}" for text in self._lines for line in text.split("\n"))
        return f'{self._flavour.decorator}def {signature}:\n    """{doc}"""\n{body}\n'

    def _write_stage(self, stage: Stage) -> None:
        for messages in messages_by_hop(stage).values():
            for name, message in messages.items():
                self._write_reduction(name, message)
        for name, output in stage.outputs.items():
            text = self._write_output(output.expression)
            start = "return " if name == NEXT else f"{_spell_name(name)} = "
            if len(start) + len(text) > _WIDTH:
                text = f"(\n{wrap_lines(text, first='    ', rest='    ', width=_WIDTH)}\n)"
            self._lines.append(start + text)

    def _write_reduction(self, name: str, message: Message) -> None:
        """Write the sum, or the least or largest, of a message over its hop, after lines that gather its symbols."""
        hop, reduce = message.hop, _REDUCE[message.reduction]
        if hop in _TABLES:
            self._hold("Q", _TABLES[hop][1], target=_TABLES[hop][0])
        for each in sorted(symbol_names([message.expression]) - self._constants):
            if each not in self._arguments.slots:
                self._hold(each, self._gather_symbol(each, hop))
        text = write_infix(message.expression, self._dialect, _spell_name)
        line = f"{_spell_name(name)} = {reduce}({text}, {_USED[hop]}, mesh)"
        if len(line) > _WIDTH:
            wrapped = wrap_lines(text, first="    ", rest="    ", width=_WIDTH)
            line = f"{_spell_name(name)} = {reduce}(\n{wrapped},\n    {_USED[hop]},\n    mesh,\n)"
        self._lines.append(line)

    def _write_output(self, expression: sp.Expr) -> str:
        text = write_infix(expression, self._dialect, _spell_name)
        varies = symbol_names([expression]) - self._constants
        return text if varies else f"{self._flavour.np}.full_like(mesh.V, {text})"

    def _gather_symbol(self, name: str, hop: Hop) -> str:
        """The expression in Python that gives a symbol of a message."""
        field, _, end = name.rpartition("_")
        if name in GEOMETRY[Hop.EDGE]:
            return f"mesh.{name}"
        if name == "delta_PQ":
            for part in PATH_VECTOR:
                self._hold(part, self._gather_symbol(part, hop))
            return f"{self._flavour.np}.hypot({self._flavour.np}.hypot(d_PQ_x, d_PQ_y), d_PQ_z)"
        if name in PATH_VECTOR:
            apart = f"{self._flavour.np}.where(ring, mesh.d_{end}[:, k] + mesh.d_{end}[N, l], 1.0)"
            # A mesh in the plane has no third components.
            return f"0.0 if mesh.d_{end} is None else {apart}" if f"d_{end}" in IN_SPACE else apart
        if end in ("PN", "NQ"):
            table = _spell_name(field) if field in self._arguments.slots else f"mesh.{field}"
            return self._along(f"{table}[:, k]" if end == "PN" else f"{table}[N, l]", hop)
        return self._at(field, end, hop)

    def _at(self, field: str, end: str, hop: Hop) -> str:
        """A field or output at one end. N of a path and Q of a ring are always cells; other ends can be ghosts."""
        cells = "mesh.V" if field == "V" else _spell_name(field)
        if end == "P":
            return f"{cells}[:, None]"
        if hop in (Hop.PATH, Hop.RING) and end == "N":
            return self._along(f"{cells}[N]", hop)
        if hop is Hop.RING:
            return f"{cells}[Q]"
        nodes = "_volume(mesh)" if field == "V" else f"_{self._rules[field]}({cells}, mesh)"
        return f"{nodes}[{_NODES.get(end, 'Q')}]"

    def _along(self, text: str, hop: Hop) -> str:
        return f"_mean({text}, same)" if hop is Hop.RING else text

    def _hold(self, name: str, text: str, *, target: str | None = None) -> None:
        if self._held.get(name) != text:
            self._held[name] = text
            self._lines.append(f"{target or _spell_name(name)} = {text}")


_NUMPY = Flavour(
    np="np",
    array="np.ndarray",
    imports="from typing import NamedTuple\n\nimport numpy as np",
    note="The precision, double or single, is that of the arrays.",
    decorator='@np.errstate(divide="ignore", invalid="ignore")  # in unused slots, which are not summed\n',
    entry=(),
    solver=CG_NUMPY,
)


def emit_numpy(scheme: Scheme) -> str:
    """Python source with `step(T, S, mesh, dt, …)` on NumPy arrays."""
    return _write_module(scheme, _NUMPY)


_JAX = Flavour(
    np="jnp",
    array="jax.Array",
    imports="from typing import NamedTuple\n\nimport jax\nimport jax.numpy as jnp",
    note="Made for jax.jit(step). The precision is that of the arrays; double needs jax_enable_x64.",
    decorator="",
    entry=("mesh, T, S = jax.tree.map(jnp.asarray, (mesh, T, S))",),
    solver=CG_JAX,
)


def emit_jax(scheme: Scheme) -> str:
    """Python source with `step(T, S, mesh, dt, …)` on JAX arrays."""
    return _write_module(scheme, _JAX)
