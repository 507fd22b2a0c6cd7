"""F = α A [ (T_N − T_P)/(d·n) + ½ (∇T_P + ∇T_N)·(n − d/(d·n)) ]: over-relaxed non-orthogonal correction, Euler in time.

The gradients are those of least squares. The formulas contain components, so that there is a scheme per dimension.
"""

from fluxforge.expression import COORDINATES, parse
from fluxforge.scheme._claims import FAMILIES, Claims
from fluxforge.scheme._gradient import correction_text, gradient_names, gradient_stage
from fluxforge.scheme._scheme import Message, Output, Scheme, Stage
from fluxforge.scheme._symbols import Hop, message_symbols, output_symbols


def corrected_in(dimension: int) -> Scheme:
    """The scheme for meshes of so many dimensions; orders in space are claimed for families in the plane."""
    normal = f"({' + '.join(f'd_{axis}*n_{axis}' for axis in COORDINATES[:dimension])})"
    known = message_symbols(Hop.EDGE, gradient_names(dimension))
    flux = parse(f"alpha*A*((T_N - T_P)/{normal} + {correction_text(dimension, normal)})", known)
    new = parse("T + dt/V*z + dt*S", output_symbols(("z",), ()))
    claims = Claims(
        conservative=True,
        linear_exact=True,
        time_order=1,
        generator=True,
        space=dict.fromkeys(FAMILIES, 2.0) if dimension == 2 else {},
        stable_to=2.0,
    )
    return Scheme(
        "corrected",
        (gradient_stage(dimension), Stage({"z": Message(flux)}, {"T_new": Output(new)})),
        summary="over-relaxed non-orthogonal correction with least-squares gradients, forward Euler",
        claims=claims,
    )


CORRECTED = corrected_in(2)
