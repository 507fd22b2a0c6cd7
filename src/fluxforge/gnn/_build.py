"""Build a network with random weights from a recipe's network section."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import jax
import sympy as sp
from jaxtyping import PRNGKeyArray

from fluxforge.errors import InputError
from fluxforge.expression._parse import parse
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._network import (
    MLP,
    AbstractMLP,
    GatedMLP,
    Gradient,
    Layer,
    Messages,
    Network,
    Update,
)
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.recipe._recipe import Network as NetworkSpec
from fluxforge.scheme._scheme import NEXT, Ghost, Hop, invariant_names, message_symbols, output_symbols
from fluxforge.scheme.reference import CORRECTION, correction_text, gradient_names

# The features per hop. {h} is the state at the start of a layer: T, or the output of the layer before.
EDGE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "simplified": ("alpha*A/delta*(T_N - T_P)",),
        "primitive": ("{h}_N", "{h}_P", "A", "delta"),
        # Used together with the numbers of the face, which depend on the equation: see `step_numbers`.
        "dimensionless": ("{h}_N - {h}_P",),
    }
)
LEGS = ("A_PN", "delta_PN", "A_NQ", "delta_NQ")
# 1/V, not V, of the far end: V of a Dirichlet ghost is infinite.
PATH = ("T_P", "T_N", "T_Q", "S_P", "S_N", "S_Q", "V_P", "V_N", "1/V_Q", "dt", *LEGS)
# Suffixes of invariants in messages of each hop; messages of a ring have none, only A and δ averaged over paths.
SUFFIXES: Mapping[Hop, tuple[str, ...]] = MappingProxyType({Hop.EDGE: ("",), Hop.PATH: ("_PN", "_NQ"), Hop.RING: ()})
NODE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"simplified": ("{h}", "dt*S"), "primitive": ("T", "S", "dt", "V"), "dimensionless": ("{h}",)}
)
SUM: Mapping[str, str] = MappingProxyType({"simplified": "dt/V*{z}", "primitive": "{z}", "dimensionless": "{z}"})
FORM: Mapping[str, str] = MappingProxyType({"direct": "f", "residual": "T + dt/V*f"})


def hops_of(spec: NetworkSpec) -> tuple[Hop, ...]:
    """The hops over which a network's messages are summed."""
    return (Hop.EDGE, Hop(spec.two_hop)) if spec.hops == 2 else (Hop.EDGE,)


def build(spec: NetworkSpec, key: PRNGKeyArray, equation: Equation = HEAT, *, dimension: int = 2) -> Network:
    """A network of L layers as the recipe describes them; its invariants are those of faces and of the equation.

    Only the correction by gradients, which is written in components, depends on the dimension. Raises InputError for an
    invariant that the equation does not have.
    """
    known = (*invariant_names(equation), CORRECTION)
    if stray := [name for name in spec.invariants if name not in known]:
        raise InputError(f"equation {equation.name!r} has no invariant {stray[0]!r:.60}; it has: {', '.join(known)}")
    before = Gradient(dimension) if CORRECTION in spec.invariants else None
    layers: list[Layer] = []
    states: tuple[str, ...] = ("T",)
    outputs: tuple[str, ...] = ()
    for number, layer_key in enumerate(jax.random.split(key, spec.layers)):
        last = number == spec.layers - 1
        names = (NEXT,) if last else tuple(f"h{number + 1}{_suffix(k, spec.hidden)}" for k in range(spec.hidden))
        layers.append(
            _build_layer(spec, layer_key, equation, before, number=number, states=states, earlier=outputs, names=names)
        )
        states, outputs = names, (*outputs, *names)
    return Network(tuple(layers), before)


def _suffix(k: int, of: int) -> str:
    return "" if of == 1 else f"c{k + 1}"


def _build_layer(
    spec: NetworkSpec,
    key: PRNGKeyArray,
    equation: Equation,
    before: Gradient | None,
    *,
    number: int,
    states: tuple[str, ...],
    earlier: tuple[str, ...],
    names: tuple[str, ...],
) -> Layer:
    keys = jax.random.split(key, 3)
    messages = []
    for hop, message_key in zip(hops_of(spec), keys, strict=False):
        texts = _expand_states(EDGE[spec.features], states) if hop is Hop.EDGE else PATH
        texts = (*texts, *(step_numbers(equation) if spec.features == "dimensionless" else ()))
        plain = [name for name in spec.invariants if name != CORRECTION]
        texts = (*texts, *(f"{name}{suffix}" for suffix in SUFFIXES[hop] for name in plain))
        known = message_symbols(hop, earlier, equation)
        if before is not None and hop is Hop.EDGE:
            texts = (*texts, correction_text(before.dimension))
            known = message_symbols(hop, (*gradient_names(before.dimension), *earlier), equation)
        features = _parse_all(texts, known)
        sums = tuple(_name_sum(number, hop, k, spec.message_width) for k in range(spec.message_width))
        f = _build_mlp(spec, len(features), spec.message_width, message_key)
        messages.append(Messages(f, sums, features, hop, spec.aggregate))
    update = _build_update(
        spec, keys[2], equation, states=states, earlier=earlier, names=names, messages=tuple(messages)
    )
    return Layer(tuple(messages), update)


def _build_update(
    spec: NetworkSpec,
    key: PRNGKeyArray,
    equation: Equation,
    *,
    states: tuple[str, ...],
    earlier: tuple[str, ...],
    names: tuple[str, ...],
    messages: tuple[Messages, ...],
) -> Update:
    sums = tuple(name for each in messages for name in each.names)
    # With primitive features, a later layer has the original features and the outputs of the layer before.
    extra = () if spec.features != "primitive" or not earlier else states
    supply = (_write_supply(equation),) if spec.features == "dimensionless" else ()
    texts = (
        *_expand_states(NODE[spec.features], states),
        *supply,
        *extra,
        *(SUM[spec.features].format(z=z) for z in sums),
    )
    features = _parse_all(texts, output_symbols(sums, earlier, equation))
    form = "T + f" if spec.features == "dimensionless" and spec.update == "residual" else FORM[spec.update]
    forms = _parse_all((form,) * len(names), {**output_symbols((), ()), "f": symbol("f")})
    f = _build_mlp(spec, len(features), len(names), key)
    return Update(f, names, features, forms, (Ghost.DIRICHLET,) * len(names))


def step_numbers(equation: Equation) -> tuple[str, ...]:
    """A Δt ∂F/∂u_P/(c V) of a face as text, α Δt A/(δ V) for heat, and that of ∂F/∂u_N if it is not its opposite."""
    own, both = equation.slopes(symbol("T_P"), symbol("T_N"))
    capacity = equation.at_cell(equation.capacity, symbol("T_P"), "P")
    scale = symbol("dt") * symbol("A") / (capacity * symbol("V_P"))
    numbers = [own * scale] if sp.simplify(both) == 0 else [own * scale, (both - own) * scale]
    return tuple(to_text(each) for each in numbers)


def _write_supply(equation: Equation) -> str:
    """Δt S/c as text: the change by the source in a step."""
    return to_text(symbol("dt") * symbol("S") / equation.at_cell(equation.capacity, symbol("T")))


def _name_sum(number: int, hop: Hop, k: int, width: int) -> str:
    return f"z{number + 1}" + ("" if hop is Hop.EDGE else "far") + _suffix(k, width)


def _expand_states(texts: Iterable[str], states: tuple[str, ...]) -> tuple[str, ...]:
    """A text that contains {h} once per state, any other text once."""
    return tuple(text.format(h=state) for text in texts for state in (states if "{h}" in text else states[:1]))


def _parse_all(texts: Iterable[str], symbols: Mapping[str, sp.Symbol]) -> tuple[sp.Expr, ...]:
    return tuple(parse(text, symbols) for text in texts)


def _build_mlp(spec: NetworkSpec, inputs: int, outputs: int, key: PRNGKeyArray) -> AbstractMLP:
    kind = GatedMLP if spec.mlp == "gated" else MLP
    # Without a gain in the recipe, each kind of MLP has its own default.
    gain = {} if spec.gain is None else {"gain": spec.gain}
    return kind.create(inputs, outputs, depth=spec.depth, width=spec.width, key=key, **gain)
