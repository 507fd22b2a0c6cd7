"""Which network is trained."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

Features: TypeAlias = Literal["simplified", "primitive"]
Aggregate: TypeAlias = Literal["sum", "mean", "min", "max"]


class Network(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """L rounds of message passing with MLPs of m layers and width d.

    - `features`: `simplified` (T, Δt S, Δt/V z; α A/δ (T_N − T_P)) or `primitive` (T, S, Δt, V, z; T_N, T_P, A, δ);
    - `hops`: 2 adds messages over two-hop paths; `ring` takes one per pair of distinct cells instead, as printed;
    - `hidden`: numbers a cell carries between layers;
    - `update`: `direct` predicts T', `residual` predicts f in T' = T + Δt/V f;
    - `gain`: weights start this many times as large as 1/√inputs; by default 1, and √3 for gated MLPs;
    - `invariants`: more inputs of messages over edges and paths, such as `d_n` = d·n and `d_t` = |d − (d·n) n|;
      `correction` is ½ (∇T_P + ∇T_N)·(n − d/(d·n)) of least-squares gradients, over edges;
    - `standardise`: every input that comes from the data is brought to mean 0 and spread 1, measured once.
    """

    features: Features = "primitive"
    layers: Annotated[int, Meta(ge=1, le=8)] = 1
    hops: Literal[1, 2] = 1
    two_hop: Literal["path", "ring"] = "path"
    mlp: Literal["relu", "gated"] = "gated"
    depth: Annotated[int, Meta(ge=1, le=16)] = 3
    width: Annotated[int, Meta(ge=1, le=4096)] = 64
    message_width: Annotated[int, Meta(ge=1, le=64)] = 1
    hidden: Annotated[int, Meta(ge=1, le=1024)] = 1
    aggregate: Aggregate = "sum"
    update: Literal["direct", "residual"] = "residual"
    gain: Annotated[float, Meta(gt=0, le=1000)] | None = None
    standardise: bool = False
    invariants: tuple[str, ...] = ()
