"""A scheme: stages of messages and outputs, its claims, and a builder that parses formulas."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from fluxforge._arguments import check_kind, check_text, describe_value
from fluxforge.errors import ExpressionError, SchemeError
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import COORDINATES, WORDS
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._symbols import (
    ENDS,
    GEOMETRY,
    NEXT,
    NODE_FIELDS,
    NODE_GEOMETRY,
    STEP,
    Ghost,
    Hop,
    Reduction,
    message_symbols,
    output_symbols,
)

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
        """Raise SchemeError, naming the stage and the message or output, for what no graph could evaluate."""
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
                    f"scheme {self.name!r}: the name {clash!r} should not end in _B or _F, ends of a line"
                )
        if list(self.stages[-1].outputs) != [NEXT]:
            raise SchemeError(f"scheme {self.name!r}: the last stage should have exactly one output, {NEXT!r}")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        stages = "1 stage" if len(self.stages) == 1 else f"{len(self.stages)} stages"
        return f"Scheme({self.name}: {self.equation.name} equation, {stages}{', implicit' if self.implicit else ''})"

    def _repr_latex_(self) -> str | None:
        """The formulas of the stages for a notebook; None where they are longer than 20,000 characters."""
        # `emit` imports this module.
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
        """The number of coordinates its formulas are written for; None where they contain no components of vectors."""
        messages = (message for stage in self.stages for message in stage.messages.values())
        found = {(message.hop, own.name) for message in messages for own in message.expression.free_symbols}
        geometry = (name for hop, name in found if name in GEOMETRY[hop])
        axes = {part for name in geometry for part in name.split("_")[1:] if part in COORDINATES}
        return None if not axes else 3 if "z" in axes else 2

    def hops(self) -> frozenset[Hop]:
        """The kinds of neighbourhood the messages are summed over."""
        return frozenset(message.hop for stage in self.stages for message in stage.messages.values())


def check_scheme(scheme: Any, name: str = "scheme") -> Scheme:
    """The scheme itself; InputError, naming the argument, for anything else."""
    return check_kind(scheme, name, Scheme, "a scheme (fluxforge.scheme.find(name) is a built-in one)")


def _check_stage(stage: Stage, earlier: tuple[str, ...], equation: Equation, where: str) -> None:
    if not stage.outputs:
        raise SchemeError(f"{where} has no outputs")
    _check_names((*stage.messages, *stage.outputs), {*earlier, *_parameter_names(equation)}, where)
    for name, message in stage.messages.items():
        allowed = frozenset(message_symbols(message.hop, earlier, equation).values())
        if stray := message.expression.free_symbols - allowed:
            raise SchemeError(
                f"{where}: message {name!r} of hop {str(message.hop)!r} contains {_join_names(stray)}, "
                f"which that hop does not carry"
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
        if not _NAME.fullmatch(name) or name.rpartition("_")[2] in ENDS[Hop.PATH] or len(name) > 40:
            raise SchemeError(
                f"{where}: {name!r:.60} is not a usable name (letters, digits and single underscores, "
                f"at most 40 characters, not ending in _P, _N or _Q)"
            )
        if name in taken or name in _RESERVED:
            raise SchemeError(f"{where}: the name {name!r} is taken")
        taken.add(name)


def _join_names(symbols: set[sp.Symbol]) -> str:
    return ", ".join(sorted(str(s) for s in symbols))


class SchemeBuilder:
    """Write a scheme as text, stage by stage: each expression is parsed with just the symbols it may contain."""

    def __init__(self, equation: Equation = HEAT) -> None:
        self._equation = equation
        self._stages: list[Stage] = []
        self._earlier: tuple[str, ...] = ()

    def stage(
        self,
        messages: Mapping[str, str | tuple[Hop, str] | tuple[Hop, str, Reduction]],
        outputs: Mapping[str, str | tuple[Ghost, str]],
        *,
        where: str = "",
    ) -> "SchemeBuilder":
        """Add a stage.

        A message is its text (summed over edges), (hop, text) or (hop, text, reduction); an output is its text or
        (ghost, text).
        `where` begins the messages of errors, to name the stage of a file.
        """
        where = where or f"stage {len(self._stages) + 1}"
        for argument, parts in {"messages": messages, "outputs": outputs}.items():
            _check_parts(parts, f"{where}: {argument}")
        parsed: dict[str, Message] = {}
        for name, given in messages.items():
            hop, text, *rest = (Hop.EDGE, given) if isinstance(given, str) else given
            known = message_symbols(hop, self._earlier, self._equation)
            parsed[name] = Message(_parse_at(text, known, f"{where}, message {name!r:.60}"), hop, *rest)
        symbols = output_symbols(parsed, self._earlier, self._equation)
        done: dict[str, Output] = {}
        for name, given_output in outputs.items():
            ghost, text = (Ghost.DIRICHLET, given_output) if isinstance(given_output, str) else given_output
            done[name] = Output(_parse_at(text, symbols, f"{where}, output {name!r:.60}"), ghost)
        self._stages.append(Stage(parsed, done))
        self._earlier = (*self._earlier, *done)
        return self

    def build(self, name: str, *, summary: str = "", claims: Claims | None = None, theta: sp.Expr = EXPLICIT) -> Scheme:
        """The finished scheme; without claims it claims nothing."""
        claims = claims or Claims()
        return Scheme(name, tuple(self._stages), theta, summary, claims, self._equation)


def _check_parts(parts: object, where: str) -> None:
    """Raise SchemeError unless this is a mapping from names to texts, or to tuples of a hop or ghost and a text."""
    if not isinstance(parts, Mapping):
        raise SchemeError(f"{where} should be a mapping from names to formulas, got {describe_value(parts)}")
    for name, given in parts.items():
        pair = isinstance(given, tuple) and len(given) in (2, 3) and isinstance(given[0], Hop | Ghost)
        reduced = pair and len(given) == 3 and isinstance(given[0], Hop) and isinstance(given[2], Reduction)
        text = given[1] if pair and (len(given) == 2 or reduced) else given
        if not isinstance(name, str) or not isinstance(text, str):
            raise SchemeError(f"{where}, {name!r:.60}: should be a formula as text, got {describe_value(given)}")


def _parse_at(text: str, symbols: Mapping[str, sp.Symbol], where: str) -> sp.Expr:
    try:
        return parse(text, symbols)
    except ExpressionError as error:
        raise ExpressionError(f"{where}: {error}") from error
