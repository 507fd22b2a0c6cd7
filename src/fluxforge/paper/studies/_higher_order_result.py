"""The result of the higher-order study, and the claims of the paper's section 5 judged from it."""

import math
from collections.abc import Mapping

from msgspec import Struct
from msgspec import field as named

from fluxforge.paper.studies._networks import NAMES, ConstantsRow, Residuals
from fluxforge.paper.studies._records import Claim, Rate, Tally, find_rate, to_verdict, weigh
from fluxforge.run._record import Numbers
from fluxforge.run.result import Discovery, Law

# A constant counts as equal to a number if it differs by at most this share of it.
CONSTANT_TOLERANCE = 0.02
ROUND_OFF = 1e-9
# A diffusivity counts as α if it differs by at most this share of it.
CONSISTENT = 0.05
# A measured order counts as 2 if it is at most this much below.
ORDER_TOLERANCE = 0.1
MIDPOINT = {"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}
OTHER_LOSS = "with another loss than printed (θ = ½) and small steps"


class Certified(Struct, frozen=True):
    """Orders in time without and with a source, and the longest stable Δt in Fourier steps; None if not established."""

    order: float | None = None
    order_with_source: float | None = None
    stable: float | None = None


class Direct(Struct, frozen=True):
    """The constants of least residual without a network: at each Δt, and their limit as Δt → 0 with its uncertainty.

    `rational` are the constants that are rounded to fractions; `certified` is about the scheme with the limit.
    """

    rows: list[ConstantsRow]
    limit: dict[str, float]
    uncertainty: dict[str, float]
    rational: dict[str, str]
    certified: Certified


class NetworkStep(Struct, frozen=True):
    """Mean residuals at one Δt of `fourier` Fourier steps, and the network's constants with the share `unexplained`."""

    fourier: float
    network: float
    euler: float
    midpoint: float
    rk4: float
    crank_nicolson: float = named(name="crank-nicolson")
    constants: dict[str, float]


class NetworkRow(Struct, frozen=True):
    """A trained network: its training, its residual over the trained range of Δt, and at single Δt."""

    steps: int
    width: int
    loss: str
    theta: float | None
    fourier: list[float]
    skipped: int
    residual: Residuals
    by_step: list[NetworkStep]


class Result(Struct, frozen=True):
    """The result of the study; `direct` by θ with two layers, `direct_four` by residual with four."""

    experiment: str
    preset: str
    direct: dict[str, Direct]
    direct_four: dict[str, Direct]
    printed_diffusivity: dict[str, list[list[float]]]
    networks: dict[str, NetworkRow]
    discovered: dict[str, Discovery]
    rates: dict[str, Tally] | None


def judge(result: Result) -> list[Claim]:
    """The claims of section 5 that can be measured, judged from the result."""
    return [
        _judge_residual(result),
        _judge_midpoint(result),
        _judge_half(result),
        _judge_source(result),
        _judge_two_hop(result),
        _judge_two_hop_found(result),
        _judge_novelty(result),
        _judge_operator(result),
        _judge_four_layers(result),
    ]


def _judge_residual(result: Result) -> Claim:
    """Judged by the seeds of both recipes in `rates`; the evidence also has this part's networks, one seed each."""
    # For θ = 0 Euler's method has no residual, so that no network can have a lower one.
    networks = {name: row.residual for name, row in result.networks.items() if row.residual.euler > ROUND_OFF}
    parts = {name: row.network / row.euler for name, row in networks.items()}
    less = ", ".join(f"{name} {networks[name].midpoint / networks[name].network:.1f}×" for name in NAMES)
    listed = ", ".join(f"{name} {part:.3f}" for name, part in parts.items())
    claim = Claim(
        "higher-order-residual",
        "Both GNNs successfully converged, achieving significantly lower residual losses than the standard "
        "first-order FV scheme.",
        "holds under a condition",
        f"One seed each, held-out residual over Euler's: {listed}. Below the midpoint rule's at θ = ½: {less}.",
        OTHER_LOSS,
    )
    return weigh(
        claim, _find_least_rate([find_rate(result.rates, name, "lower residual than Euler") for name in NAMES])
    )


def _find_least_rate(rates: list[Rate | None]) -> Rate | None:
    """The least of the rates; None if one of them is missing."""
    known = [rate for rate in rates if rate is not None]
    return min(known, key=lambda rate: rate.reached / rate.of) if known and len(known) == len(rates) else None


def _judge_midpoint(result: Result) -> Claim:
    """Judged by the seeds of `rates`; unconditional if the loss as printed has the same constants in the limit."""
    discovery = result.discovered["midpoint"]
    printed = result.direct.get("θ = 1")
    as_printed = printed is not None and abs(printed.limit["c1"] - 0.5) <= 0.5 * CONSTANT_TOLERANCE
    values = _list_constants(discovery.constants, discovery.constants_uncertainty)
    evidence = f"One seed in full, θ = ½, small steps: {values or 'no formula'}"
    if printed is not None:
        evidence += f". As printed (θ = 1) the limit is c1 = {printed.limit['c1']:.3f}{_describe_order(printed)}"
    claim = Claim(
        "higher-order-midpoint",
        "GNN-Midpoint actually learns an explicit midpoint scheme (or second order Runge–Kutta).",
        to_verdict(as_printed, in_part=True),
        evidence + ".",
        "" if as_printed else OTHER_LOSS,
    )
    return weigh(claim, find_rate(result.rates, "midpoint", "midpoint rule"))


def _judge_half(result: Result) -> Claim:
    """The printed ½ is compared with c at each Δt, for the loss as printed (θ = 1)."""
    rows = result.direct["θ = 1"].rows
    fluxes = [row.constants["c1"] for row in rows]
    values = ", ".join(f"{c1:.2f} at {row.step:g}" for c1, row in zip(fluxes, rows, strict=True) if row.step >= 0.1)
    nearest = min(rows, key=lambda row: abs(row.constants["c1"] - 0.5))
    close = [abs(c1 - 0.5) <= 0.5 * 5 * CONSTANT_TOLERANCE for c1 in fluxes]
    everywhere = all(close)
    return Claim(
        "higher-order-half",
        "The first layer advances by ½ Δt/V Σ α A/δ (T_N − T_P).",
        to_verdict(everywhere, min(fluxes) <= 0.5 <= max(fluxes) or any(close)),
        f"least residual as printed (θ = 1), c1 against Δt/Δt_Fourier: {values}; nearest to ½ at "
        f"{nearest.step:g}." + ("" if everywhere else " It depends on the time steps of the training."),
    )


def _judge_source(result: Result) -> Claim:
    limits = {name: result.direct[key].limit["a1"] for name, key in (("θ = ½", "θ = 0.5"), ("θ = 1", "θ = 1"))}
    whole = [abs(limit - 1.0) <= CONSTANT_TOLERANCE for limit in limits.values()]
    rows = [row.constants for row in result.direct["θ = 1"].rows]
    beside = [row["a1"] for row in rows if abs(row.get("c1", 0.0) - 0.5) <= 0.1]
    span = f"{min(beside):.2f} to {max(beside):.2f}" if len(beside) > 1 else "".join(f"{one:.2f}" for one in beside)
    note = f"; where c1 is within 0.1 of ½ it is {span}" if beside else ""
    return Claim(
        "higher-order-source",
        "The half step adds Δt S.",
        to_verdict(all(whole), any(whole)),
        f"small-step limit of the coefficient of Δt S in the half step: {limits['θ = 1']:.4f} with the loss as printed "
        f"(θ = 1){note}; {limits['θ = ½']:.4f} at θ = ½.",
    )


def _judge_two_hop(result: Result) -> Claim:
    """Judged by the seeds of `rates` whose two-hop coefficient has no powers of areas and distances, as printed.

    Unconditional if the printed term has the diffusivity α.
    """
    K = {family: tensor[0][0] for family, tensor in result.printed_diffusivity.items()}
    right = all(abs(value - 1.0) <= CONSISTENT for value in K.values())
    law = _find_far_law(result)
    learned = "" if law is None else f" One seed's two-hop coefficient is {law.factor:.2f} {_format_powers(law)}."
    claim = Claim(
        "higher-order-two-hop",
        "GNN-2ndOrder learns ½ α (T_Q − T_P) over second neighbours.",
        to_verdict(right, in_part=True),
        f"That scheme diffuses with {K['squares']:.3f} α on squares and {K['equilateral']:.3f} α on equilateral "
        f"triangles{'' if right else ': it solves another equation'}.{learned}",
        "" if right else "for another equation than the heat equation",
    )
    return weigh(claim, find_rate(result.rates, "two-hop", "two-hop term without A and δ"))


def _judge_two_hop_found(result: Result) -> Claim:
    """Judged by the seeds of `rates` whose two-hop network has the constants of the midpoint rule, of order two."""
    discovery = result.discovered["two-hop"]
    # Unconditional if the constants of least residual of the printed loss give a second-order step, too.
    printed = result.direct.get("θ = 1")
    outright = printed is not None and _is_second_order(printed)
    values = _list_constants(discovery.constants, discovery.constants_uncertainty, "abcde")
    outcome = "recovered" if discovery.recovered else "not recovered"
    claim = Claim(
        "higher-order-two-hop-found",
        "A two-hop GNN discovers a second-order correction term using a two-hop stencil.",
        to_verdict(outright, in_part=True),
        f"One seed in full, θ = ½, small steps, a message per path, including paths that return: {outcome} "
        f"({values or 'no formula'}), e and b being the factors of Δt w_PN w_NQ/V_N and of its source.",
        "" if outright else OTHER_LOSS,
    )
    return weigh(claim, find_rate(result.rates, "two-hop", "midpoint rule"))


def _judge_novelty(result: Result) -> Claim:
    """Holds if the scheme of least residual for θ = 1 is new: of order two in time and not the midpoint rule."""
    limits = {name: result.direct[key] for name, key in (("θ = ½", "θ = 0.5"), ("θ = 1", "θ = 1"))}
    known = {name: _are_near(direct.limit, MIDPOINT) for name, direct in limits.items()}
    new = [name for name, direct in limits.items() if _is_second_order(direct) and not known[name]]
    parts = (
        f"{name}: {_list_constants(direct.limit)}{_describe_order(direct)}"
        + (", the explicit midpoint rule, which is the second-order Runge–Kutta method" if known[name] else "")
        for name, direct in limits.items()
    )
    rate = find_rate(result.rates, "midpoint", "midpoint rule")
    trained = "" if rate is None else f". Trained networks of two layers have its constants in {rate.text}"
    return Claim(
        "higher-order-novel",
        "… we enabled it to discover a new, higher-order finite volume scheme.",
        to_verdict("θ = 1" in new, bool(new)),
        f"two layers with the least residual, in the limit of small steps: {'; '.join(parts)}{trained}.",
    )


def _judge_operator(result: Result) -> Claim:
    """Judged by the seeds of `rates` whose two-hop term is not the two-point flux applied twice, a known operator."""
    K = result.printed_diffusivity["squares"][0][0]
    twice = find_rate(result.rates, "two-hop", "two-hop term is the flux twice")
    note = "" if twice is None else f" In {twice.text} it is; of refused networks it is not known."
    law = _find_far_law(result)
    learned = "" if law is None else f" One seed's powers: {_format_powers(law)}."
    claim = Claim(
        "higher-order-novel-operator",
        "The learned term can be interpreted as a novel discrete operator.",
        "holds",
        "It is not if the two-hop term is the two-point flux applied twice, A_PN/δ_PN A_NQ/δ_NQ/(V_P V_N): that is the "
        f"second power of a known operator.{note} The term as printed makes the diffusivity {K:.3f} α on squares."
        f"{learned}",
    )
    return weigh(claim, find_rate(result.rates, "two-hop", "two-hop term is something else"))


def _judge_four_layers(result: Result) -> Claim:
    """The paper's footnote: holds if the constants of least residual of four layers tend to those of RK4."""
    rk4 = {f"c{k}": 1.0 / (5 - k) for k in range(1, 5)}
    reached = [_are_near(direct.limit, rk4) for direct in result.direct_four.values()]
    listed = "; ".join(
        f"{name}: {_list_constants(direct.limit, letters='c')}{_describe_order(direct)}"
        for name, direct in result.direct_four.items()
    )
    return Claim(
        "higher-order-four-layers",
        "It would be interesting to see if with 4 layers a GNN can actually learn a full Runge–Kutta method.",
        to_verdict(all(reached), any(reached)),
        f"constants of least residual for small steps, layer by layer (RK4: 1/4, 1/3, 1/2, 1): {listed}."
        + _describe_four_layers(result),
    )


def _describe_four_layers(result: Result) -> str:
    """A text on residuals and constants of trained networks of four layers; empty if there are none."""
    rows = {name: each for name, each in result.networks.items() if name.startswith("four layers")}
    if not rows:
        return ""
    parts = "; ".join(
        f"{name} residual {each.residual.network:.4f} (midpoint rule {each.residual.midpoint:.4f}), at its "
        f"longest step {_list_constants(each.by_step[-1].constants, letters='c')}, which leave "
        f"{each.by_step[-1].constants['unexplained']:.1%} of its step unexplained"
        for name, each in rows.items()
    )
    return f" Trained: {parts}."


def _find_far_law(result: Result) -> Law | None:
    """The power law of the two-hop coefficient in the discovery of the recipe two-hop; None if it has none."""
    laws = result.discovered["two-hop"].laws
    return None if laws is None else laws.far


def _is_second_order(direct: Direct) -> bool:
    return direct.certified.order is not None and direct.certified.order >= 2.0 - ORDER_TOLERANCE


def _describe_order(direct: Direct) -> str:
    """A text on the measured order in time of the scheme with these constants; empty without one."""
    return "" if direct.certified.order is None else f", of order {direct.certified.order:.2f} in time"


def _are_near(constants: Mapping[str, float], wanted: Mapping[str, float]) -> bool:
    return all(
        abs(constants.get(name, math.inf) - value) <= CONSTANT_TOLERANCE * value for name, value in wanted.items()
    )


def _list_constants(values: Numbers | None, off: Numbers | None = None, letters: str = "ac") -> str:
    """A text with the constants whose names begin with one of the letters, and their uncertainties `off`."""
    return ", ".join(
        f"{name} = {value:.4f}" + (f" ± {(off or {})[name]:.0e}" if name in (off or {}) else "")
        for name, value in (values or {}).items()
        if name[0] in letters
    )


def _format_powers(law: Law) -> str:
    return " ".join(f"{name}^{power:.2f}" for name, power in law.exponents.items())
