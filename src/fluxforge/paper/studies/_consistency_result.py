"""The result of the consistency study, and the paper's sentences judged from its orders, diffusivities and growth."""

from msgspec import Struct

from fluxforge.paper.studies._records import Claim, Verdict

# An order is reached if it is missed by no more than that, in time and in space.
TIME_TOLERANCE, SPACE_TOLERANCE = 0.1, 0.15
# An error stays where it is if the last refinement reduces it at a rate below this.
PLATEAU = 0.15
# A scheme solves the given heat equation if every principal diffusivity is within this part of α.
CONSISTENT = 0.05


class Tensor(Struct, frozen=True):
    """An effective diffusivity over α: its entries, its principal values, and how far they are from 1 at most."""

    K: list[list[float]]
    principal: list[float]
    mean: float
    off: float


class Steady(Struct, frozen=True):
    """Relative L2 errors of steady states under refinement, the rates between them, and the order if there is one."""

    errors: list[float]
    rates: list[float | None]
    order: float | None


class Family(Struct, frozen=True):
    """A family of meshes from coarse to fine: by scheme, steady errors and the diffusivity of every mesh.

    `lattice` is the exact diffusivity of the infinite lattice, None for families that are not periodic.
    """

    cells: list[int]
    h: list[float]
    steady: dict[str, Steady]
    diffusivity: dict[str, list[Tensor | None]]
    lattice: dict[str, Tensor] | None


class Implicit(Struct, frozen=True):
    """A form of Crank–Nicolson: R(z), where it is stable, |R| at some Δt λ, diffusivity, and its share of a source."""

    factor: str
    stable: str
    steps: list[float]
    growth: list[float]
    diffusivity: Tensor
    source: float


class Algebra(Struct, frozen=True):
    """What needs no refinement: orders in time, equations solved on squares, both forms of Crank–Nicolson."""

    time_order: dict[str, float | None]
    equations: dict[str, str]
    crank_nicolson: dict[str, Implicit]


class Result(Struct, frozen=True):
    """The result of the study."""

    experiment: str
    preset: str
    families: dict[str, Family]
    time_order: dict[str, float | None]
    equations: dict[str, str]
    crank_nicolson: dict[str, Implicit]
    choices: dict[str, str]


def judge(result: Result) -> list[Claim]:
    """The paper's sentences, judged from the numbers alone."""
    return [_judge_first_order(result), _judge_two_hop(result), _judge_crank_nicolson(result)]


def _verdict_of(good: list[bool]) -> Verdict:
    return "holds" if good and all(good) else "holds under a condition" if any(good) else "does not hold"


def _judge_first_order(result: Result) -> Claim:
    """Holds if order 1 is measured in time and, on every family, in space; under a condition if on some families."""
    time = result.time_order["euler"]
    in_time = time is not None and abs(time - 1.0) <= TIME_TOLERANCE
    orders = {name: family.steady["euler"].order for name, family in result.families.items()}
    first = {name: order is not None and abs(order - 1.0) <= SPACE_TOLERANCE for name, order in orders.items()}
    parts = [f"{name} {_describe_convergence(family)}" for name, family in result.families.items()]
    counted = (
        f"{sum(first.values())} of {len(first)} families have order 1"
        if any(first.values())
        else "no family has order 1"
    )
    evidence = (
        f"order {'none' if time is None else f'{time:.2f}'} in time; in space {counted}. Relative L2 error of steady "
        f"states on the finest meshes: {'; '.join(parts)}"
    )
    text = "This update rule corresponds to a first-order accurate FV discretizations in both time and space"
    return Claim("consistency-first-order", text, _verdict_of([in_time and each for each in first.values()]), evidence)


def _describe_convergence(family: Family) -> str:
    """Order, or the error it stays at, of the plain flux; and that of the corrected one beside it."""
    plain, corrected = family.steady["euler"], family.steady["corrected"]
    rates = ", ".join("none" if rate is None else f"{rate:.2f}" for rate in plain.rates)
    where = f"{plain.errors[-1]:.2g} on {family.cells[-1]:,} cells"
    if plain.order is not None:
        said = f"order {plain.order:.2f} ({where})"
    elif plain.rates and plain.rates[-1] is not None and plain.rates[-1] < PLATEAU:
        said = f"stays at {where} (rates {rates})"
    else:
        said = f"no order to be quoted, {where} (rates {rates})"
    other = "none" if corrected.order is None else f"{corrected.order:.2f}"
    return f"{said}, corrected flux order {other} ({corrected.errors[-1]:.2g})"


def _judge_two_hop(result: Result) -> Claim:
    """Where it conducts as it should and errs no more than one hop does, it improves accuracy."""
    good, parts = [], []
    for name, family in result.families.items():
        K, plain = _finest_diffusivity(family, "two-hop-printed"), _finest_diffusivity(family, "euler")
        error, peer = (family.steady[scheme].errors[-1] for scheme in ("two-hop-printed", "euler"))
        good.append(K.off <= CONSISTENT and error <= peer)
        ours, theirs = _format_principal(K), _format_principal(plain)
        parts.append(f"{name} {ours} (one hop {theirs}), error {error:.2g} (one hop {peer:.2g})")
    evidence = (
        f"on squares it solves {result.equations['two-hop-printed']}; principal values of K/α, as printed: "
        + "; ".join(parts)
    )
    text = (
        "[The correction term based on 2-hop neighbours] acts as a discrete approximation to higher-order spatial "
        "derivatives, improving the accuracy of the simulation"
    )
    return Claim("consistency-two-hop", text, _verdict_of(good), evidence)


def _finest_diffusivity(family: Family, name: str) -> Tensor:
    """The diffusivity of the lattice where there is one, otherwise of the finest mesh."""
    found = family.diffusivity[name][-1] if family.lattice is None else family.lattice[name]
    assert found is not None  # only equilateral triangles have none of their meshes, and they are a lattice
    return found


def _format_principal(K: Tensor) -> str:
    low, high = (f"{value:.2f}" for value in K.principal)
    return low if low == high else f"{low} and {high}"


def _judge_crank_nicolson(result: Result) -> Claim:
    """Holds if it diffuses with α, stably at every step, and feels a source; without the source under a condition."""
    found, right = result.crank_nicolson["crank-nicolson-printed"], result.crank_nicolson["crank-nicolson"]
    diffuses = found.diffusivity.off <= CONSISTENT and found.stable == "at every step"
    felt = abs(found.source - right.source) <= CONSISTENT
    verdict: Verdict = "does not hold" if not diffuses else "holds" if felt else "holds under a condition"
    growth = ", ".join(f"{value:.3g} at {step:g}" for step, value in zip(found.steps, found.growth, strict=True))
    evidence = (
        f"R(z) = {found.factor}, where Crank–Nicolson has {right.factor}; stable {found.stable}: a mode of "
        f"rate λ grows by |R| = {growth} (Δt λ); on squares it solves "
        f"{result.equations['crank-nicolson-printed']}, K/α = {_format_principal(found.diffusivity)}; "
        f"of a source it feels {found.source:.0%}"
    )
    text = "a second-order Crank–Nicolson formulation: V_P (T_P′ − T_P)/Δt + α Σ_N A/δ (T_N − T_P) at n + ½ = 0"
    return Claim("consistency-crank-nicolson", text, verdict, evidence)
