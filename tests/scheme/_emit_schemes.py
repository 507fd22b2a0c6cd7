"""Schemes for tests of emitted code: each contains something that no built-in scheme has."""

import sympy as sp

from fluxforge.scheme import Claims, Ghost, Hop, Scheme, SchemeBuilder

NEW = "T + dt*z/V"


def build_scheme(name: str, builder: SchemeBuilder, theta: sp.Expr = sp.S.Zero) -> Scheme:
    return builder.build(name, summary="for the tests", claims=Claims(), theta=theta)


def edge(name: str, message: str, new: str = NEW, theta: sp.Expr = sp.S.Zero) -> Scheme:
    return build_scheme(name, SchemeBuilder().stage({"z": message}, {"T_new": new}), theta)


_OUTPUTS = {"a": "T + dt*S", "b": (Ghost.OWNER, "T*S"), "c": (Ghost.ZERO, "S - T")}

NONLINEAR = edge("nonlinear", "alpha*(1 + T_P**2)*A/delta*(T_N - T_P)")

GEOMETRIC = build_scheme(
    "geometric",
    SchemeBuilder()
    .stage(
        {"w": "alpha*A/delta", "m": "n_x*d_x - n_y*d_y + chi/V_N"},
        {"total": (Ghost.OWNER, "w/V"), "skew": (Ghost.ZERO, "m*V"), "held": "2*m"},
    )
    .stage({"z": "(total_P + total_N)*(T_N - T_P) + skew_N - held_N*T_P"}, {"T_new": "T + dt*(z + S)*total"}),
)

RING = build_scheme(
    "ring-averages",
    SchemeBuilder()
    .stage({}, _OUTPUTS)
    .stage(
        {
            "z": (
                Hop.RING,
                "alpha*A_PN*delta_NQ/(delta_PN*A_NQ)*V_N/V_Q*(T_N - T_P)*S_Q + a_N*b_N - c_N*a_Q + b_Q*c_P",
            ),
            "y": (Hop.RING, "(d_PQ_x*T_Q - d_PQ_y*S_N)/delta_PQ/V_P"),
            "x": (Hop.RING, "delta_PQ"),
            "one": (Hop.RING, "1"),
        },
        {"T_new": "T + dt*(z + y + x/one)"},
    ),
)

PATHS = build_scheme(
    "all-of-a-path",
    SchemeBuilder()
    .stage({"e": "T_N*S_P"}, _OUTPUTS)
    .stage(
        {
            "z": (Hop.PATH, "A_PN*n_x_NQ*d_y_PN + delta_NQ*n_y_PN*d_x_NQ*chi_NQ - chi_PN*T_P/V_Q + S_Q/V_N*V_P"),
            "y": (Hop.PATH, "a_P*a_N*a_Q + b_P*b_N*b_Q + c_P*c_N*c_Q"),
            "x": (Hop.RING, "T_N*T_Q*A_PN"),
            "w": "T_N - a_N + b_N - c_N",
            "u": (Hop.PATH, "T_N*T_Q"),
        },
        {"d": (Ghost.OWNER, "z + y - x + w*u")},
    )
    .stage({"v": (Hop.PATH, "d_Q - d_N"), "t": (Hop.RING, "d_Q*d_N")}, {"T_new": "T + dt*(v + t)"}),
)

INVARIANT = build_scheme(
    "products-with-n",
    SchemeBuilder().stage(
        {
            "z": "alpha*A/d_n*(1 - d_t**2/delta**2)*(T_N - T_P)",
            "y": (Hop.PATH, "d_n_PN*d_t_NQ*(T_Q - T_N) + d_t_PN/d_n_NQ*T_P"),
        },
        {"T_new": "T + dt*(z + y)/V"},
    ),
)

CONSTANTS = build_scheme(
    "constants",
    SchemeBuilder()
    .stage(
        {"count": "1", "rest": "alpha*dt", "unused": "T_N"},
        {"flat": (Ghost.OWNER, "alpha"), "half": "1/2", "idle": "S"},
    )
    .stage({"z": "flat_N*T_N - half_N*half_P"}, {"T_new": "T + dt*z"}),
)

COUNTS = build_scheme(
    "counts", SchemeBuilder().stage({"count": "1", "far": (Hop.PATH, "2")}, {"T_new": "count + far/8"})
)

_WORDS = (
    *("lambda", "in", "np", "jnp", "mesh", "k", "l", "exists", "ring", "step", "e", "double", "first", "path", "count"),
    *("work", "free", "calloc", "NAN", "pow", "y1", "awkward_names_dirichlet", "fluxforge_mesh", "a", "n"),
)


def _named(name: str, words: tuple[str, ...]) -> Scheme:
    builder = SchemeBuilder().stage(
        {word: f"{n + 1}*T_N**2" for n, word in enumerate(words)}, {f"{word}0": word for word in words}
    )
    builder.stage({}, {word: f"2*{word}0" for word in words})
    message = "+".join(f"{word}_N*{word}_P" for word in words)
    return build_scheme(name, builder.stage({"z": message, "y": (Hop.RING, f"{words[0]}_N")}, {"T_new": "z + y"}))


AWKWARD = _named("awkward-names", _WORDS)
PLAIN = _named("plain-names", tuple(f"w{n}x" for n in range(len(_WORDS))))

HALF = sp.Rational(1, 2)
BACKWARD = edge("backward-euler", "alpha*A/delta*(T_N - T_P)", "T + dt*z/V + dt*S", sp.Integer(1))
DAMPED = edge("damped", "alpha*A/delta*(T_N - 2*T_P)", "0.9*T + dt*z/V + dt*S", sp.Float(0.7))
WEIGHTED = build_scheme(
    "weighted-implicit",
    SchemeBuilder()
    .stage({"w": "A/delta"}, {"total": (Ghost.OWNER, "w")})
    .stage({"z": "alpha*A/delta*(total_P + total_N)*(T_N - T_P)", "s": "S_N*A"}, {"T_new": "T + dt*z/V + dt*(S + s)"}),
    HALF,
)

EXPLICIT = (NONLINEAR, GEOMETRIC, INVARIANT, RING, PATHS, CONSTANTS, COUNTS)
IMPLICIT = (BACKWARD, DAMPED, WEIGHTED)


def _implicit(name: str, message: str, new: str) -> Scheme:
    return edge(name, message, new, HALF)


_FLUX = "alpha*A/delta*(T_N - T_P)"
REFUSED = {
    "not linear in T": _implicit("curved", f"T_P*{_FLUX}", NEW),
    "T passes through several stages": build_scheme(
        "staged",
        SchemeBuilder().stage({"z": _FLUX}, {"half": NEW}).stage({"y": "half_N*A"}, {"T_new": "T + dt*y"}),
        HALF,
    ),
    "reaches beyond the nearest neighbours": build_scheme(
        "far", SchemeBuilder().stage({"z": (Hop.PATH, "T_Q - T_N")}, {"T_new": NEW}), HALF
    ),
    "a term without T and S": _implicit("shifted", _FLUX, f"{NEW} + dt"),
    "not positive definite: a mode of decay rate 2.00/dt makes it singular": _implicit(
        "wrong-way", _FLUX, "T - dt*z/V"
    ),
    "V times the weight of the neighbour differs": _implicit("lopsided", f"{_FLUX}*V_N", NEW),
    "no rational amplification factor": _implicit("exponential", _FLUX, "T + (1 - exp(-dt))*z/V"),
}

HOSTILE = Scheme(
    name='ends """ here */ \\N{BELL} % \n int main(){}',
    stages=edge("plain", _FLUX).stages,
    summary="/* ??/ \\ \u202e \x00 \"\"\" '''",
)
