"""The decoys as data: exchange laws and networks, each with the verdicts it may get."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from fluxforge import recipe
from fluxforge.gnn import Network
from fluxforge.paper.studies._fakes import first_order, shaken, two_stages, untrained

Verdicts: TypeAlias = frozenset[str]
# Trains, or takes over, the network of the heat law.
Teacher: TypeAlias = Callable[[], Network]
Maker: TypeAlias = Callable[[recipe.Recipe, Teacher], Network]

FOUND: Verdicts = frozenset({"recovered"})
NOT_BELIEVED: Verdicts = frozenset({"approximation", "refused"})
# Where `recovered` is allowed, the formula has to be the decoy's own law.
AS_ITSELF: Verdicts = FOUND | NOT_BELIEVED


@dataclass(frozen=True)
class Decoy:
    """A law to train on, or a network in the place of a trained one.

    `allowed` are the verdicts it may get. A formula that is recovered has to be the law of the data as well, which is
    that of heat unless `changes` holds another; of recipes that train on a residual nothing may be recovered here.
    `make` gives the network, from the recipe and from the network of the heat law; without it one is trained.
    """

    name: str
    what: str
    allowed: Verdicts
    changes: Mapping[str, Any] = field(default_factory=dict)
    recipe: Literal["first-order", "midpoint"] = "first-order"
    make: Maker | None = None

    @property
    def is_control(self) -> bool:
        """Whether it has to be recovered: not a decoy, but a check that the judge believes what is true."""
        return self.allowed == FOUND


def _law(name: str, what: str, law: str, allowed: Verdicts = AS_ITSELF, **changes: float) -> Decoy:
    more = {f"data.{key}": value for key, value in changes.items()}
    return Decoy(name, what, allowed, MappingProxyType({"data.law": law, **more}))


def _noise(name: str, level: float, allowed: Verdicts) -> Decoy:
    return Decoy(name, f"heat, noise of {level:.0%} on the data", allowed, MappingProxyType({"data.noise": level}))


def _stages(name: str, what: str, *constants: float, bend: float = 0.0) -> Decoy:
    def make(spec: recipe.Recipe, _: Teacher) -> Network:
        return two_stages(spec, *constants, bend=bend)

    return Decoy(name, what, NOT_BELIEVED, recipe="midpoint", make=make)


def _network(name: str, what: str, make: Maker, allowed: Verdicts = NOT_BELIEVED) -> Decoy:
    return Decoy(name, what, allowed, make=make)


LAWS: tuple[Decoy, ...] = (
    Decoy("heat", "α A/δ (T_N − T_P): nothing is wrong", FOUND),
    _law("alpha-1.04", "α off by 4 %", "1.04*alpha*A/delta*(T_N - T_P)", FOUND),
    _noise("noise-1", 0.01, FOUND),
    # A constant is known to a hundredth there, and the network to about as much: both verdicts are true.
    _noise("noise-10", 0.1, FOUND | {"approximation"}),
    _law("cubic-0.15", "a cubic term of 0.15", "A/delta*(T_N - T_P) + 0.15*A/delta*(T_N - T_P)**3"),
    _law("cubic-0.02", "a cubic term of 0.02", "A/delta*(T_N - T_P) + 0.02*A/delta*(T_N - T_P)**3"),
    _law(
        "cubic-noise-10",
        "a cubic term of 0.15, noise of 10 % on the data",
        "A/delta*(T_N - T_P) + 0.15*A/delta*(T_N - T_P)**3",
        noise=0.1,
    ),
    _law("quadratic", "a quadratic term of 0.3", "A/delta*(T_N - T_P) + 0.3*A/delta*(T_N - T_P)**2"),
    _law("delta-squared", "A/δ²", "A/delta**2*(T_N - T_P)"),
    # No square root is among the operators of the search.
    _law("delta-root", "A/√δ", "A/sqrt(delta)*(T_N - T_P)", NOT_BELIEVED),
    _law("delta-over-A", "δ/A", "delta/A*(T_N - T_P)"),
    _law("no-volume", "V forgotten", "V*A/delta*(T_N - T_P)"),
    # No feature of the network holds the direction of a face.
    _law("directional", "a factor 1 + 0.3 n_x²", "(1 + 0.3*n_x**2)*A/delta*(T_N - T_P)", NOT_BELIEVED),
    _law("upwind", "a factor 1 + 0.2 T_P", "(1 + 0.2*T_P)*A/delta*(T_N - T_P)"),
    _law("unequal", "T_N − 1.1 T_P", "A/delta*(T_N - 1.1*T_P)"),
)

FAKES: tuple[Decoy, ...] = (
    _stages("series-0.8", "1 + z + 0.8 z² for a midpoint rule", 0.8, 0.8),
    _stages("tanh", "midpoint rule + 0.3 Δt tanh(L T)", 0.5, 0.5, bend=0.3),
    # The rule itself does not have the constants of least residual at any Δt > 0, which the recipe asks for.
    _stages("midpoint-rule", "the exact midpoint rule, not of least residual", 0.5, 0.5),
    _stages("euler", "Euler's scheme for a midpoint rule", 0.0, 0.0),
    _stages("midpoint-2alpha", "midpoint rule with 2 α", 0.5, 1.0, 1.0, 2.0),
    _stages("midpoint-5%", "midpoint rule, constants off by 5 %", 0.525, 0.525, 1.05, 1.05),
    # What a message is in is the network's own business, as long as its update undoes it.
    _network("gauge", "first-order scheme in a gauge of the receiver", lambda s, _: first_order(s, bend=0.04), FOUND),
    _network("first-order-2alpha", "first-order scheme with 2 α", lambda s, _: first_order(s, factor=2.0)),
    _network("first-order-5%", "first-order scheme, 5 % off", lambda s, _: first_order(s, factor=1.05)),
    _network("cubic-network", "first-order scheme + a cubic term of 0.15", lambda s, _: first_order(s, cubic=0.15)),
    _network("untrained", "a network without training", lambda s, _: untrained(s)),
    Decoy(
        "50-steps", "a network after 50 steps of training", NOT_BELIEVED, {"training.steps": 50, "training.chunk": 50}
    ),
    # One part in a hundred on every weight leaves the step within a few: whether three are exceeded is up to chance.
    _network(
        "shaken-1%", "the network of heat, weights shaken by 1 %", lambda _, heat: shaken(heat(), 0.01), AS_ITSELF
    ),
    _network("shaken-10%", "the network of heat, weights shaken by 10 %", lambda _, heat: shaken(heat(), 0.1)),
)
DECOYS: Mapping[str, Decoy] = MappingProxyType({each.name: each for each in (*LAWS, *FAKES)})
