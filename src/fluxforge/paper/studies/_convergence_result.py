"""The result of the convergence study, observed orders, and the paper's claims about it, judged from its rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from msgspec import field as named
from msgspec.structs import replace

from fluxforge.certify._studies import Rates
from fluxforge.paper.studies._measures import GridRow, MeshFacts
from fluxforge.paper.studies._records import Claim, Verdict, to_number, to_verdict

PRINTED = ("midpoint-printed", "two-hop-printed")
CORRECT_SCHEMES = ("midpoint", "two-hop")
COMPARED_SCHEMES = ("euler", "crank-nicolson", *PRINTED, *CORRECT_SCHEMES)
# "Similar": at most this many times Crank–Nicolson's value. The leading error constant of the midpoint rule, 1/6, is
# twice that of Crank–Nicolson, 1/12.
SIMILAR_RATIO = 3.0
# "A large range": up to at least this many Fourier steps, that is beyond the Fourier condition.
LARGE_RANGE = 2.0
# "Close to the Fourier condition": at least NEAR Fourier steps; far from it: at most FAR.
NEAR, FAR = 0.5, 0.125
# "Second order": an observed order within this of 2.
ORDER_TOLERANCE = 0.25
# "Significantly lower": a ratio below this in the geometric mean, and at most 1 everywhere.
SIGNIFICANT = 0.6
# Verdicts are on formulas only: networks are reported too, but there is only one seed of each.
OTHER_FORMULAS = "with other formulas than printed"


@dataclass(frozen=True)
class Place:
    """A scheme on a mesh; `wanted` is the requested number of cells, which the generator meets approximately."""

    scheme: str
    wanted: int
    cells: int


# Dataclasses, since structs cannot have two bases with fields; the fields of the last base come first.
@dataclass(frozen=True)
class Row(GridRow, Place):
    """A row of the grid with scheme and mesh, whether Δt is within the stability limit (None: unknown), and cost."""

    stable: bool | None
    seconds_per_step: float
    seconds: float


@dataclass(frozen=True)
class SpaceRow(Place):
    """Relative L2 errors against the heat equation on meshes of one size: one per seed, and their root mean square."""

    fourier: float
    error: float | None
    errors: list[float | None]
    seconds: float


class Order(Struct, frozen=True):
    """An observed order, None if the rates between levels do not converge; `levels` is the number of errors."""

    levels: int
    order: float | None
    rates: list[float | None]


class TimeOrders(Struct, frozen=True):
    """Orders in time on one mesh, without source (`free`) and with one (`driven`)."""

    free: Order
    driven: Order


class Orders(Struct, frozen=True):
    """Orders of a scheme: in time by the requested number of cells, and in space."""

    time: dict[str, TimeOrders]
    space: Order


class Choices(Struct, frozen=True):
    """The choices of the study, as text for readers: meshes, fields, norms, seeds and end times."""

    meshes: str
    residual: str
    error: str
    space: str
    blow_up: str = named(name="blow-up")
    oscillation: str
    seeds: list[int]
    end: float
    until: float
    fractions: list[float]


class Result(Struct, frozen=True):
    """The result of the study."""

    experiment: str
    preset: str
    schemes: list[str]
    networks: str
    choices: Choices
    meshes: list[MeshFacts]
    rows: list[Row]
    space: list[SpaceRow]
    orders: dict[str, Orders]


def fit_time_orders(name: str, rows: Sequence[Row]) -> dict[str, TimeOrders]:
    """The orders in time of a scheme by requested number of cells, from the errors at stable time steps."""
    # For a network `stable` is None, since its limit is not known: all rows without blow-up are used.
    own = [row for row in rows if row.scheme == name and row.stable is not False]
    own.sort(key=lambda row: row.fourier, reverse=True)
    sizes = dict.fromkeys(row.wanted for row in rows if row.scheme == name)
    return {
        str(wanted): TimeOrders(
            free=_fit_order([(row.fourier, row.free) for row in own if row.wanted == wanted]),
            driven=_fit_order([(row.fourier, row.driven) for row in own if row.wanted == wanted]),
        )
        for wanted in sizes
    }


def fit_space_order(name: str, rows: Sequence[SpaceRow]) -> Order:
    """The order in h = 1/√cells of a scheme, from the meshes on which no run blew up."""
    return _fit_order([(row.cells**-0.5, row.error) for row in rows if row.scheme == name])


def _fit_order(pairs: Sequence[tuple[float, float | None]]) -> Order:
    """The observed order from pairs of Δt (or h) and error, in descending order of Δt; errors of None are left out."""
    known = [(size, error) for size, error in pairs if error is not None]
    rates = Rates(tuple(size for size, _ in known), tuple(error for _, error in known))
    return Order(len(known), rates.order, [to_number(rate) for rate in rates.rates])


def judge(result: Result) -> list[Claim]:
    """The claims of the paper about convergence, judged from the numbers alone."""
    return [
        _judge_similarity(result),
        _judge_range(result),
        _judge_near_fourier(result),
        _judge_order_in_space(result),
        _judge_residual(result),
        _judge_accuracy(result),
        _judge_oscillation(result),
    ]


def _find_networks(result: Result) -> list[str]:
    """The names of networks in the result: those without a stability limit among the facts of the meshes."""
    known = set().union(*(mesh.limits for mesh in result.meshes))
    return [name for name in result.schemes if name not in known]


def _compute_ratios(
    result: Result, name: str, *, peer: str, key: str, low: float = 0.0, high: float = np.inf
) -> Iterator[float]:
    """Ratios of the field `key` of a scheme to that of `peer`, for all meshes and Δt in [low, high] Fourier steps.

    A ratio is infinite where the scheme blew up; there is none where the peer has no value, or zero.
    """
    peers = {(row.wanted, row.fourier): getattr(row, key) for row in result.rows if row.scheme == peer}
    for row in result.rows:
        other = peers.get((row.wanted, row.fourier))
        if row.scheme == name and low <= row.fourier <= high and other:
            yield np.inf if getattr(row, key) is None else getattr(row, key) / other


def _find_worst_ratio(
    result: Result, name: str, *, key: str = "error", low: float = 0.0, high: float = np.inf
) -> float:
    """The largest ratio to Crank–Nicolson's value; infinite if there is nothing to compare."""
    return max(_compute_ratios(result, name, peer="crank-nicolson", key=key, low=low, high=high), default=np.inf)


def _list_values(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {'blows up' if np.isinf(value) else f'{value:.3g}'}" for name, value in numbers.items())


def _choose_condition(verdict: Verdict, condition: str = OTHER_FORMULAS) -> str:
    return condition if verdict == "holds under a condition" else ""


def _judge_similarity(result: Result) -> Claim:
    """Holds if the printed schemes are similar to Crank–Nicolson; under a condition if only the corrected ones are."""
    keys = {"error": "error", "free": "error without a source", "residual_one": "residual (θ = 1, as printed)"}
    names = (*PRINTED, *CORRECT_SCHEMES, *_find_networks(result))
    ratios = {key: {name: _find_worst_ratio(result, name, key=key, high=1.0) for name in names} for key in keys}
    good = {name: all(ratios[key][name] <= SIMILAR_RATIO for key in keys) for name in names}
    evidence = "for Δt up to the Fourier step, at worst over Crank–Nicolson's: " + "; ".join(
        f"{words}: {_list_values(ratios[key])}" for key, words in keys.items()
    )
    text = "when the Fourier condition is met, both second-order GNN schemes display performances similar to CN's"
    verdict = to_verdict(all(good[name] for name in PRINTED), all(good[name] for name in CORRECT_SCHEMES))
    return Claim("similar to Crank–Nicolson", text, verdict, evidence, _choose_condition(verdict))


def _find_reach(result: Result, name: str, key: str = "error") -> float:
    """The largest Δt, in Fourier steps, up to which the value is similar to Crank–Nicolson's on every mesh."""
    reach = 0.0
    for fraction in sorted({row.fourier for row in result.rows}):
        if _find_worst_ratio(result, name, key=key, low=fraction, high=fraction) > SIMILAR_RATIO:
            break
        reach = fraction
    return reach


def _judge_range(result: Result) -> Claim:
    reach = {name: _find_reach(result, name) for name in ("midpoint-printed", "midpoint", *_find_networks(result))}
    limits = _list_stability_limits(result, "midpoint")
    # The paper's figure shows residuals of a single step, for which stability does not matter.
    by_residual = _find_reach(result, "midpoint-printed", "residual_one")
    verdict = to_verdict(
        reach["midpoint-printed"] >= LARGE_RANGE,
        by_residual >= LARGE_RANGE or reach["midpoint"] >= LARGE_RANGE,
    )
    condition = "for the residual of one step" if by_residual >= LARGE_RANGE else OTHER_FORMULAS
    evidence = (
        f"residual of one step (θ = 1) of midpoint-printed within {SIMILAR_RATIO:g} times Crank–Nicolson's up to "
        f"{by_residual:g} Fourier steps; "
        f"longest step, in Fourier steps, with an error within {SIMILAR_RATIO:g} times Crank–Nicolson's: "
        + ", ".join(f"{name} {value:g}" for name, value in reach.items())
        + f" (midpoint-printed without a source {_find_reach(result, 'midpoint-printed', 'free'):g})"
        + f"; the midpoint rule is stable up to {min(limits):.2f} to {max(limits):.2f} Fourier steps"
    )
    text = "the GNN-Midpoint scheme keeps following CN for a large range of validity"
    return Claim("midpoint follows Crank–Nicolson", text, verdict, evidence, _choose_condition(verdict, condition))


def _judge_near_fourier(result: Result) -> Claim:
    """Holds if the printed scheme is similar to Crank–Nicolson far from the Fourier step, but not close to it."""
    near, far = (
        {name: _find_worst_ratio(result, name, low=low, high=high) for name in ("two-hop-printed", "two-hop")}
        for low, high in ((NEAR, 1.0), (0.0, FAR))
    )
    worse = {name: far[name] <= SIMILAR_RATIO < near[name] for name in near}
    limits = {name: _list_stability_limits(result, name) for name in ("two-hop-printed", "midpoint")}
    evidence = (
        f"error over Crank–Nicolson's from {NEAR:g} to 1 Fourier steps: {_list_values(near)}; up to {FAR:g}: "
        f"{_list_values(far)}; stability limit in Fourier steps: "
        + ", ".join(f"{name} {min(steps):.2f} to {max(steps):.2f}" for name, steps in limits.items())
    )
    if far["two-hop-printed"] > SIMILAR_RATIO:
        evidence += "; as printed it also has a large error at short steps"
    # Enough for a conditional verdict: a stability limit below the Fourier step and below that of the midpoint rule.
    early = min(limits["two-hop-printed"]) < min(1.0, min(limits["midpoint"]))
    text = "GNN-2ndOrder struggles when we get close to the Fourier condition"
    return Claim(
        "two-hop near the Fourier step",
        text,
        to_verdict(worse["two-hop-printed"], early or worse["two-hop"]),
        evidence,
    )


def _list_stability_limits(result: Result, name: str) -> list[float]:
    """The longest stable Δt of an explicit scheme on each mesh, in Fourier steps."""
    return [dt / mesh.fourier for mesh in result.meshes if (dt := mesh.limits[name].dt) is not None]


def _judge_order_in_space(result: Result) -> Claim:
    # Crank–Nicolson has the same flux: an order that it does not reach either is not due to the time stepping.
    names = (*PRINTED, *CORRECT_SCHEMES, "crank-nicolson")
    orders = {name: result.orders[name].space.order for name in names}
    second = {name: order is not None and abs(order - 2.0) <= ORDER_TOLERANCE for name, order in orders.items()}
    rates = {name: result.orders[name].space.rates for name in names}
    errors = {
        name: [row.error for row in result.space if row.scheme == name and row.error is not None] for name in names
    }
    parts = [
        f"{name}: {'no order' if order is None else f'order {order:.2f}'}"
        + f" (rates {', '.join('none' if rate is None else f'{rate:.2f}' for rate in rates[name])})"
        + (f", error {errors[name][0]:.1e} to {errors[name][-1]:.1e}" if errors[name] else ", blew up")
        for name, order in orders.items()
    ]
    sizes = [mesh.cells for mesh in result.meshes]
    evidence = "; ".join(
        [f"{min(sizes)} to {max(sizes)} cells: {parts[0]}", *parts[1:], *_describe_network_errors(result)]
    )
    verdict = to_verdict(all(second[name] for name in PRINTED), all(second[name] for name in CORRECT_SCHEMES))
    text = "second order in space on irregular meshes"
    return Claim("second order in space", text, verdict, evidence, _choose_condition(verdict))


def _describe_network_errors(result: Result) -> Iterator[str]:
    """For each network, a text with its errors in space from the coarsest mesh to the finest."""
    for name in _find_networks(result):
        rows = [row for row in result.space if row.scheme == name]
        errors = ("blows up" if row.error is None else f"{row.error:.1e}" for row in rows)
        if rows:
            yield f"{name}: error {', '.join(errors)} on {rows[0].cells} to {rows[-1].cells} cells"


def _compute_residual_ratios(result: Result, name: str) -> dict[str, tuple[float, float]]:
    """For each θ, geometric mean and maximum of the ratios to Euler's residual, over Δt up to the Fourier step."""
    by_theta = {}
    for key in ("residual_half", "residual_one"):
        ratios = list(_compute_ratios(result, name, peer="euler", key=key, high=1.0)) or [np.inf]
        by_theta[key] = (float(np.exp(np.mean(np.log(ratios)))), max(ratios))
    return by_theta


def _are_lower(result: Result, names: Sequence[str]) -> bool:
    every = [pair for name in names for pair in _compute_residual_ratios(result, name).values()]
    return bool(every) and all(mean < SIGNIFICANT and most <= 1.0 for mean, most in every)


def _judge_residual(result: Result) -> Claim:
    """Holds if residuals of the printed schemes are lower; under a condition if only those of the corrected ones."""
    networks = _find_networks(result)
    names = (*PRINTED, *CORRECT_SCHEMES, *networks)
    parts = []
    for name in names:
        half, one = _compute_residual_ratios(result, name).values()
        parts.append(f"{name} {half[0]:.2g} (at most {half[1]:.2g}) for θ = ½, {one[0]:.2g} ({one[1]:.2g}) for θ = 1")
    evidence = "residual over Euler's for Δt up to the Fourier step, geometric mean: " + "; ".join(
        [*parts, *(_describe_by_mesh(result, name) for name in networks)]
    )
    text = "both GNNs achieve significantly lower residual losses than the standard first-order FV scheme"
    verdict = to_verdict(_are_lower(result, PRINTED), _are_lower(result, CORRECT_SCHEMES))
    return Claim("lower residual than first order", text, verdict, evidence, _choose_condition(verdict))


def _describe_by_mesh(result: Result, name: str) -> str:
    """A text with a network's ratios by mesh: unlike those of a formula, they depend on the sizes trained on."""
    sizes = sorted({row.wanted for row in result.rows if row.scheme == name})
    means = []
    for wanted in sizes:
        only = replace(result, rows=[row for row in result.rows if row.wanted == wanted])
        means.append(f"{_compute_residual_ratios(only, name)['residual_half'][0]:.2g}")
    return f"{name} on {', '.join(f'{size:,}' for size in sizes)} cells (θ = ½): {', '.join(means)}"


def _judge_accuracy(result: Result) -> Claim:
    """Holds if errors in time are smaller than Euler's on every mesh, for every Δt up to the Fourier step."""
    names = (*PRINTED, *CORRECT_SCHEMES, *_find_networks(result))
    most = {
        name: max(_compute_ratios(result, name, peer="euler", key="error", high=1.0), default=np.inf) for name in names
    }
    formulas = (*PRINTED, *CORRECT_SCHEMES)
    verdict = to_verdict(all(most[name] < 1.0 for name in PRINTED), any(most[name] < 1.0 for name in formulas))
    evidence = "error in time over Euler's for Δt up to the Fourier step, at worst: " + _list_values(most)
    text = "the discovered schemes are more accurate than the standard first-order method"
    return Claim("more accurate than first order", text, verdict, evidence, _choose_condition(verdict))


def _judge_oscillation(result: Result) -> Claim:
    """Holds if 2/λ_max is below the longest Δt of the study on every mesh."""
    longest = max(row.fourier for row in result.rows)
    onset = [mesh.oscillation / mesh.fourier for mesh in result.meshes if mesh.oscillation]
    inside = [each < longest for each in onset]
    span = f"{min(onset):.2f} to {max(onset):.2f} Fourier steps" if onset else "an unknown step"
    evidence = f"Crank–Nicolson's fastest mode changes sign at every step beyond {span} (2/λ_max)"
    text = "there are steps at which spurious oscillations might start even for Crank–Nicolson"
    return Claim("Crank–Nicolson oscillates", text, to_verdict(bool(inside) and all(inside)), evidence)
