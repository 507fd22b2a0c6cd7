"""Schemes as records: the symbols of messages and outputs, stages, and what a scheme claims.

A cell that receives is P, its neighbour across a face N, and the cell at the end of a two-hop path P → N → Q is Q.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

import sympy as sp

from fluxforge._arguments import check_kind, check_text, describe_value
from fluxforge.errors import SchemeError
from fluxforge.expression._symbols import COORDINATES, WORDS, symbols_of
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.pde._parameter import NUMBER, Rank, Unit, Where, dimensions, multiply_units, unit


class Hop(StrEnum):
    """The neighbourhood over which a message is summed.

    - `edge`: the neighbours N of P, ghosts included;
    - `path`: the directed paths P → N → Q with N a cell, Q = P and ghosts Q included;
    - `ring`: the distinct cells Q at distance exactly two, path features averaged over the paths from P to Q;
    - `line`: the lines B – P – N – F through the faces of P, ghosts N included: B is the node across the face of P
      opposite to the one shared with N, F the node across the face of N opposite to it, and N itself where N is a
      ghost. For meshes whose cells have opposite faces: quadrilaterals.
    """

    EDGE = "edge"
    PATH = "path"
    RING = "ring"
    LINE = "line"


class Reduction(StrEnum):
    """How the messages of a cell's neighbours are combined: their sum, minimum or maximum."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


class Ghost(StrEnum):
    """The value of a stage's output at a Dirichlet ghost: g, its owner's value, or 0.

    The value of a Neumann ghost follows its owner's: it is the owner's value, plus q δ where the rule is `dirichlet`.
    """

    DIRICHLET = "dirichlet"
    OWNER = "owner"
    ZERO = "zero"


NODE_FIELDS = ("T", "S")
"""The fields of a cell: the unknown, whatever the equation calls it, and its source."""

NODE_GEOMETRY = ("V",)
EDGE_GEOMETRY = ("A", "delta", "n_x", "n_y", "d_x", "d_y", "chi")
IN_SPACE = ("n_z", "d_z")
"""Further components on faces of meshes in space."""

INVARIANTS = ("d_n", "d_t")
"""d·n and |d − (d·n) n|: independent of the dimension, of rotations of the mesh, and of the side of the face."""

OFFSETS = tuple(f"p_{axis}" for axis in COORDINATES)
"""From the centroid of P to the centre of the face; seen from N it is p − d."""

DIRECTED_COMPONENTS = tuple(f"{vector}_{axis}" for vector in ("n", "d") for axis in COORDINATES)
"""Geometry that changes sign when it is seen from the other side of a face; for parameters see `turned_names`."""

ON_FACES = (*EDGE_GEOMETRY, *IN_SPACE, *INVARIANTS)

HOP_ENDS = {
    Hop.EDGE: ("P", "N"),
    Hop.PATH: ("P", "N", "Q"),
    Hop.RING: ("P", "N", "Q"),
    Hop.LINE: ("P", "N", "B", "F"),
}
ALL_ENDS = tuple(dict.fromkeys(end for ends in HOP_ENDS.values() for end in ends))
LEGS = {Hop.EDGE: ("",), Hop.PATH: ("_PN", "_NQ"), Hop.RING: (), Hop.LINE: ("",)}
GEOMETRY = {
    Hop.EDGE: (*ON_FACES, *OFFSETS),
    Hop.LINE: (*ON_FACES, *OFFSETS),
    Hop.PATH: tuple(f"{name}{leg}" for leg in LEGS[Hop.PATH] for name in ON_FACES),
    Hop.RING: (
        *(f"{name}{leg}" for leg in LEGS[Hop.PATH] for name in ("A", "delta")),
        "delta_PQ",
        "d_PQ_x",
        "d_PQ_y",
        "d_PQ_z",
    ),
}
NEXT = "T_new"
STEP = "dt"


def turned_names(equation: Equation) -> tuple[str, ...]:
    """Symbols that change sign when seen from the other side of a face: n, d, and a·n and K n of the parameters."""
    vectors = (p.normal_name for p in equation.parameters if p.rank is Rank.VECTOR)
    return (*DIRECTED_COMPONENTS, *vectors, *(name for p in equation.parameters for name in p.conormal_names))


def constants(equation: Equation) -> tuple[str, ...]:
    """Symbols with one value in a run: the constant scalars of the equation, and Δt."""
    return (*(name for p in equation.parameters if p.where is Where.CONSTANT for name in p.cell_names), STEP)


def message_symbols(hop: Hop, earlier: Iterable[str], equation: Equation = HEAT) -> Mapping[str, sp.Symbol]:
    """The symbols that messages over a hop may contain: parameters, geometry, and every end's fields and outputs."""
    per_end = (*NODE_FIELDS, *NODE_GEOMETRY, *earlier)
    along = [name for p in equation.parameters for leg in LEGS[hop] for name in p.edge_names(HOP_ENDS[hop], leg)]
    apart = [name for p in equation.parameters for name in (*p.tangential_names, *p.conormal_names)]
    along += [f"{name}{leg}" for name in apart for leg in LEGS[hop]]
    at_ends = (f"{name}_{end}" for name in per_end for end in HOP_ENDS[hop])
    return symbols_of((*constants(equation), *along, *GEOMETRY[hop], *at_ends))


def invariant_names(equation: Equation = HEAT) -> tuple[str, ...]:
    """The scalars of an edge that no rotation changes and that follow from d, n and the equation's parameters.

    `d_n` and `d_t`; `a_n` = a·n and `a_t` = |a − (a·n) n| of a vector; `K_nn` = n·K n and `K_nt` = |K n − (n·K n) n| of
    a tensor; a scalar given per face.
    """
    on_faces = [p for p in equation.parameters if p.rank is not Rank.SCALAR or p.where is Where.FACE]
    return (*INVARIANTS, *(name for p in on_faces for name in (*p.edge_names(), *p.tangential_names)))


def output_symbols(sums: Iterable[str], earlier: Iterable[str], equation: Equation = HEAT) -> Mapping[str, sp.Symbol]:
    """The symbols that outputs may contain: parameters, the cell's fields, this stage's sums and earlier outputs."""
    own = (name for p in equation.parameters for name in p.cell_names)
    return symbols_of((STEP, *own, *NODE_FIELDS, *NODE_GEOMETRY, *sums, *earlier))


@cache
def symbol_units(equation: Equation = HEAT, dimension: int = 2) -> Mapping[str, Unit]:
    """The units of the symbols of messages and outputs, as far as the equation states those of its parameters.

    In two dimensions a volume is an area, and the area of a face a length.
    """
    length, time = unit(length=1), unit(time=1)
    known = {"A": unit(length=dimension - 1), "V": unit(length=dimension), "delta": length, STEP: time}
    known |= dict.fromkeys(INVARIANTS, length)
    known |= dict.fromkeys((*(f"n_{axis}" for axis in COORDINATES), "chi"), NUMBER)
    known |= {f"{name}_{axis}": length for name in ("d", "d_PQ", "p") for axis in COORDINATES}
    for p in equation.parameters:
        if p.unit is not None:
            apart = (*p.tangential_names, *p.conormal_names)
            known |= dict.fromkeys((*p.cell_names, *p.edge_names(), *apart), p.unit)
    known["T"] = equation.unknown_unit
    capacity = dimensions(equation.capacity, known)
    if isinstance(capacity, Unit):
        known["S"] = multiply_units(capacity, equation.unknown_unit, unit(time=-1))
    places = (*ALL_ENDS, "PN", "NQ", "PQ")
    return {f"{name}_{place}": value for name, value in known.items() for place in places} | known


FAMILIES = ("squares", "right", "cross", "equilateral", "jittered", "regular", "irregular")


@dataclass(frozen=True)
class Claims:
    """Properties a scheme claims; what is absent (None, or a family not listed) is not claimed.

    - `conservative`: Σ V T does not change under insulation without a source;
    - `linear_exact`: fields linear in x and y are steady to round-off on every mesh;
    - `time_order`: the order in Δt against the exact solution of the scheme's own semi-discrete system;
    - `generator`: that system is dT/dt = L T + S with L the plain flux α A/δ (T_N − T_P) or a consistent one;
    - `space`: per mesh family the order of the steady error, 0 where the error does not fall;
    - `stable_to`: the real stability interval is [−stable_to, 0], infinite if unlimited, 0 if never stable.
    """

    conservative: bool | None = None
    linear_exact: bool | None = None
    time_order: int | None = None
    generator: bool | None = None
    space: Mapping[str, float] = field(default_factory=dict)
    stable_to: float | None = None


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")
_RESERVED = frozenset((STEP, *NODE_FIELDS, *NODE_GEOMETRY, *WORDS, *(name for hop in Hop for name in GEOMETRY[hop])))

# Longest formula that a notebook shows.
_MOST_CHARACTERS = 20_000
# θ of an explicit scheme.
EXPLICIT = sp.Integer(0)


@dataclass(frozen=True)
class Message:
    """An expression that is summed over the neighbours of one hop, or whose minimum or maximum over them is taken."""

    expression: sp.Expr
    hop: Hop = Hop.EDGE
    reduction: Reduction = Reduction.SUM


@dataclass(frozen=True)
class Output:
    """An expression per cell, and its value at ghosts in later stages."""

    expression: sp.Expr
    ghost: Ghost = Ghost.DIRICHLET


@dataclass(frozen=True)
class Stage:
    """One round of message passing:  z_m = Σ over a hop of messages[m];  h = outputs[h](node, z, earlier h).

    `time` is the c of the time t + c Δt at which sources and walls are evaluated. It follows from the time integrator,
    not from the formulas: None for stages that no integrator made.
    """

    messages: Mapping[str, Message]
    outputs: Mapping[str, Output]
    time: sp.Rational | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return hash((frozenset(self.messages.items()), frozenset(self.outputs.items())))


@dataclass(frozen=True)
class Scheme:
    """T' = F(T): the stages in order; the last one has the single output `T_new`.

    T is the unknown of the scheme's equation, whatever that calls it; the stages may contain the equation's parameters.

    With θ > 0 the scheme is implicit:  T' − T = (1 − θ)(F(T) − T) + θ(F(T') − T').
    """

    name: str
    stages: tuple[Stage, ...]
    theta: sp.Expr = EXPLICIT
    summary: str = ""
    claims: Claims = field(default_factory=Claims)
    equation: Equation = HEAT

    def __post_init__(self) -> None:
        """Raise SchemeError, naming the stage and the message or output, for formulas that no graph can evaluate."""
        check_text(self.name, "name"), check_text(self.summary, "summary")
        check_kind(self.claims, "claims", Claims, "Claims(...)")
        if not isinstance(self.stages, tuple) or not all(isinstance(stage, Stage) for stage in self.stages):
            raise SchemeError(f"scheme {self.name!r}: stages should be a tuple of Stage(...)")
        if not isinstance(self.theta, sp.Expr):
            raise SchemeError(f"scheme {self.name!r}: theta should be a SymPy number, got {describe_value(self.theta)}")
        if not self.stages:
            raise SchemeError(f"scheme {self.name!r} has no stages")
        if not (self.theta.is_number and self.theta.is_real and 0 <= self.theta <= 1):
            raise SchemeError(f"scheme {self.name!r}: theta should be a number from 0 to 1, got {self.theta}")
        for number, stage, earlier in self.walk():
            _check_stage(stage, earlier, self.equation, f"scheme {self.name!r}, stage {number + 1}")
        if Hop.LINE in self.hops():
            names = (name for stage in self.stages for name in (*stage.messages, *stage.outputs))
            if clash := next((name for name in names if name.endswith(("_B", "_F"))), None):
                raise SchemeError(
                    f"scheme {self.name!r}: the name {clash!r} should not end in _B or _F, which name the ends "
                    "of a line"
                )
        if list(self.stages[-1].outputs) != [NEXT]:
            raise SchemeError(f"scheme {self.name!r}: the last stage should have exactly one output, {NEXT!r}")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        stages = "1 stage" if len(self.stages) == 1 else f"{len(self.stages)} stages"
        of = f"{self.equation.name:.60} equation, {stages}{', implicit' if self.implicit else ''}"
        return " ".join(f"Scheme({self.name:.60}: {of})".split())

    def _repr_latex_(self) -> str | None:
        """The formulas of the stages for a notebook; None if they are longer than _MOST_CHARACTERS."""
        # Imported here, since `emit` imports this module.
        from fluxforge.scheme.emit._latex import emit_latex

        text = emit_latex(self)
        formula = text[text.index(r"\begin{aligned}") : text.index(r"\]")].strip()
        return f"$$\n{formula}\n$$" if len(formula) <= _MOST_CHARACTERS else None

    def __hash__(self) -> int:
        return hash((self.name, self.stages, self.theta, self.equation))

    @property
    def implicit(self) -> bool:
        """Whether a step solves a system of equations."""
        return bool(self.theta != 0)

    def walk(self) -> Iterator[tuple[int, Stage, tuple[str, ...]]]:
        """Each stage with its number and the names of the outputs that came before it."""
        earlier: tuple[str, ...] = ()
        for number, stage in enumerate(self.stages):
            yield number, stage, earlier
            earlier = (*earlier, *stage.outputs)

    def ghost_rules(self) -> dict[str, Ghost]:
        """The ghost rule of T and of every output."""
        rules = {"T": Ghost.DIRICHLET}
        for stage in self.stages:
            rules.update({name: output.ghost for name, output in stage.outputs.items()})
        return rules

    @property
    def dimension(self) -> int | None:
        """The number of coordinates of the formulas; None if they contain no components of vectors."""
        used = {(message.hop, each.name) for message in self.messages() for each in message.expression.free_symbols}
        geometry = (name for hop, name in used if name in GEOMETRY[hop])
        axes = {part for name in geometry for part in name.split("_")[1:] if part in COORDINATES}
        return None if not axes else 3 if "z" in axes else 2

    def hops(self) -> frozenset[Hop]:
        """The neighbourhoods over which the messages are summed."""
        return frozenset(message.hop for message in self.messages())

    def messages(self) -> list[Message]:
        """The messages of all stages."""
        return [message for stage in self.stages for message in stage.messages.values()]

    def formulas(self) -> list[sp.Expr]:
        """The formulas of all messages, and then of all outputs."""
        outputs = (output.expression for stage in self.stages for output in stage.outputs.values())
        return [*(message.expression for message in self.messages()), *outputs]

    def symbols_in_messages(self) -> set[str]:
        """The names of all symbols in the messages."""
        return {own.name for message in self.messages() for own in message.expression.free_symbols}


def check_scheme(scheme: Any) -> Scheme:
    """The scheme itself; InputError for anything else."""
    return check_kind(scheme, "scheme", Scheme, "a scheme (fluxforge.scheme.find(name) is a built-in one)")


def _check_stage(stage: Stage, earlier: tuple[str, ...], equation: Equation, where: str) -> None:
    if not stage.outputs:
        raise SchemeError(f"{where} has no outputs")
    _check_names((*stage.messages, *stage.outputs), {*earlier, *_parameter_names(equation)}, where)
    for name, message in stage.messages.items():
        allowed = frozenset(message_symbols(message.hop, earlier, equation).values())
        if stray := message.expression.free_symbols - allowed:
            raise SchemeError(
                f"{where}: message {name!r} of hop {str(message.hop)!r} contains {_join_names(stray)}, "
                f"which is not defined for that hop"
            )
    allowed = frozenset(output_symbols(stage.messages, earlier, equation).values())
    for name, output in stage.outputs.items():
        if stray := output.expression.free_symbols - allowed:
            raise SchemeError(f"{where}: output {name!r} contains {_join_names(stray)}, which a cell does not have")


def _parameter_names(equation: Equation) -> set[str]:
    return {
        name for p in equation.parameters for name in (p.name, *p.edge_names(), *p.tangential_names, *p.conormal_names)
    }


def _check_names(names: tuple[str, ...], taken: set[str], where: str) -> None:
    for name in names:
        if not _NAME.fullmatch(name) or name.rpartition("_")[2] in HOP_ENDS[Hop.PATH] or len(name) > 40:
            raise SchemeError(
                f"{where}: {name!r:.60} is not a usable name (letters, digits and single underscores, "
                f"at most 40 characters, not ending in _P, _N or _Q)"
            )
        if name in taken or name in _RESERVED:
            raise SchemeError(f"{where}: the name {name!r} is already used: choose another")
        taken.add(name)


def _join_names(symbols: set[sp.Symbol]) -> str:
    return ", ".join(sorted(str(s) for s in symbols))
