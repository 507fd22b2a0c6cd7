"""Discretisations in space by name, and schemes by the names of their parts: SPACE, TIME, or SPACE-TIME."""

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from fluxforge.errors import SchemeError
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._bounded import BOUNDED
from fluxforge.scheme._damped import DAMPED
from fluxforge.scheme._diffusion import DIFFUSION
from fluxforge.scheme._integrate import TWO_POINT, Space, integrate
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._symbols import Hop
from fluxforge.scheme._tableau import EULER, TABLEAUX, Tableau, find_tableau
from fluxforge.scheme.reference import BUILT_IN, PLAIN
from fluxforge.scheme.transport import TRANSPORT

SPACES: Mapping[str, Space] = {space.name: space for space in (TWO_POINT, *DIFFUSION, *DAMPED, *TRANSPORT)}
"""The discretisations in space, by name. The name of a time integrator alone stands for the two-point flux."""


class Parts(NamedTuple):
    """What the name of a scheme says: a space and a time integrator."""

    space: Space
    tableau: Tableau


def split_name(name: str) -> Parts | None:
    """Read `SPACE` (with forward Euler), `TIME` (of the equation's two-point flux) or `SPACE-TIME`.

    Both parts may contain hyphens; of several readings, the one with the longest space is taken. None where there is
    none.
    """
    if (tableau := find_tableau(name)) is not None:
        return Parts(TWO_POINT, tableau)
    if name in SPACES:
        return Parts(SPACES[name], EULER)
    words = name.split("-")
    for count in range(len(words) - 1, 0, -1):
        space = SPACES.get("-".join(words[:count]))
        tableau = find_tableau("-".join(words[count:]))
        if space is not None and tableau is not None:
            return Parts(space, tableau)
    return None


def named_scheme(name: str, equation: Equation | None, dimension: int = 2) -> Scheme | None:
    """The scheme of a built-in name or of the names of its parts; None where the name is neither.

    Without an equation it is the one the space is for: heat, or advection. Raises SchemeError for a space that does not
    serve the equation.
    """
    parts = split_name(name)
    wanted = equation or (HEAT if parts is None else parts.space.default)
    if name in BUILT_IN and (parts is None or wanted == HEAT) and _fits(BUILT_IN[name], dimension):
        return BUILT_IN[name]
    if parts is None:
        return None
    space = parts.space.at(dimension)
    if (reason := space.refuse(wanted)) is not None:
        raise SchemeError(f"scheme {name!r} does not serve the equation {wanted.name!r}: {reason}")
    return integrate(parts.tableau, wanted, _claiming(space, wanted), name=name)


def bounded_scheme(scheme: Scheme, dimension: int = 2) -> Scheme | None:
    """For a scheme with a limiter along lines of cells, the one with the same limiter in cells of any shape.

    None for other schemes, and for one whose formulas are not those of its name.
    """
    if Hop.LINE not in scheme.hops() or named_scheme(scheme.name, scheme.equation, dimension) != scheme:
        return None
    return named_scheme(f"{BOUNDED}{scheme.name}", scheme.equation, dimension)


def _claiming(space: Space, equation: Equation) -> Space:
    """The space with the claims that hold for the equation: those of diffusion are made where nothing else is."""
    if space is TWO_POINT:
        return PLAIN if equation == HEAT else space
    if space.default.only_diffuses and not equation.only_diffuses:
        return replace(space, orders={}, linear_exact=None)
    return space


def _fits(scheme: Scheme, dimension: int) -> bool:
    return scheme.dimension in (None, dimension)


def nearest_name(name: str) -> str | None:
    """The known name that is most like the one given, if any is."""
    pairs = (f"{space}-{time}" for space in SPACES for time in TABLEAUX)
    close = difflib.get_close_matches(name, [*BUILT_IN, *TABLEAUX, *SPACES, *pairs], n=1)
    return close[0] if close else None
