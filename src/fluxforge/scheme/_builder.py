"""Writing a scheme as text."""

from collections.abc import Mapping

import sympy as sp

from fluxforge._arguments import describe_value
from fluxforge.errors import ExpressionError, SchemeError
from fluxforge.expression import parse
from fluxforge.pde import HEAT, Equation
from fluxforge.scheme._claims import Claims
from fluxforge.scheme._scheme import EXPLICIT, Message, Output, Scheme, Stage
from fluxforge.scheme._symbols import Ghost, Hop, message_symbols, output_symbols


class SchemeBuilder:
    """Write a scheme as text, stage by stage: each expression is parsed with just the symbols it may contain."""

    def __init__(self, equation: Equation = HEAT) -> None:
        self._equation = equation
        self._stages: list[Stage] = []
        self._earlier: tuple[str, ...] = ()

    def stage(
        self,
        messages: Mapping[str, str | tuple[Hop, str]],
        outputs: Mapping[str, str | tuple[Ghost, str]],
        *,
        where: str = "",
    ) -> "SchemeBuilder":
        """Add a stage. A message is its text (summed over edges) or (hop, text); an output its text or (ghost, text).

        `where` opens the message of an error, so that a file's reader learns which stage is meant.
        """
        where = where or f"stage {len(self._stages) + 1}"
        for argument, parts in {"messages": messages, "outputs": outputs}.items():
            _check_parts(parts, f"{where}: {argument}")
        parsed: dict[str, Message] = {}
        for name, given in messages.items():
            hop, text = (Hop.EDGE, given) if isinstance(given, str) else given
            parsed[name] = Message(
                _parsed(text, message_symbols(hop, self._earlier, self._equation), f"{where}, message {name!r:.60}"),
                hop,
            )
        symbols = output_symbols(parsed, self._earlier, self._equation)
        done: dict[str, Output] = {}
        for name, given_output in outputs.items():
            ghost, text = (Ghost.DIRICHLET, given_output) if isinstance(given_output, str) else given_output
            done[name] = Output(_parsed(text, symbols, f"{where}, output {name!r:.60}"), ghost)
        self._stages.append(Stage(parsed, done))
        self._earlier = (*self._earlier, *done)
        return self

    def build(self, name: str, *, summary: str = "", claims: Claims | None = None, theta: sp.Expr = EXPLICIT) -> Scheme:
        """The finished scheme; without claims it claims nothing."""
        claims = claims or Claims()
        return Scheme(name, tuple(self._stages), theta, summary, claims, self._equation)


def _check_parts(parts: object, where: str) -> None:
    """A mapping from names to texts, or to pairs of a word and a text."""
    if not isinstance(parts, Mapping):
        raise SchemeError(f"{where} should be a mapping from names to formulas, got {describe_value(parts)}")
    for name, given in parts.items():
        pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Hop | Ghost)
        text = given[1] if pair else given
        if not isinstance(name, str) or not isinstance(text, str):
            raise SchemeError(f"{where}, {name!r:.60}: should be a formula as text, got {describe_value(given)}")


def _parsed(text: str, symbols: Mapping[str, sp.Symbol], where: str) -> sp.Expr:
    try:
        return parse(text, symbols)
    except ExpressionError as error:
        raise ExpressionError(f"{where}: {error}") from error
