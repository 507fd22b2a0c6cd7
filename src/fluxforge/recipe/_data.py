"""Data sections of a recipe, and the ranges that numbers of a recipe must lie in.

The schema refuses a number outside its range and names field, value and range. The upper ends are far beyond any run
that ends, so that a typing error is reported at once.

Every kind of data has two fields that change the answers of supervised training, and nothing else:

- `law`: the formula of a message over an edge, of A, δ, T_P, T_N, V, n, d and the equation's parameters, in place of
  its own flux: the answer of heat is then T + Δt (1/V Σ law + S). None is the equation's flux, α A/δ (T_N − T_P);
- `noise`: standard deviation of normal noise on the answers, in units of the root mean square of the step's own change.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

Steps: TypeAlias = Annotated[int, Meta(ge=1, le=100_000_000)]
Batch: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000)]
MeshCount: TypeAlias = Annotated[int, Meta(ge=1, le=100_000)]
Cells: TypeAlias = Annotated[int, Meta(ge=8, le=100_000)]
# A length of time or space in units of the cell, a Fourier number, a diffusivity: α Δt/δ² stays a number of float32.
Positive: TypeAlias = Annotated[float, Meta(gt=0, le=1e6)]
# A parameter of an equation, of either sign.
LARGEST_PARAMETER = 1e6
Signed: TypeAlias = Annotated[float, Meta(ge=-LARGEST_PARAMETER, le=LARGEST_PARAMETER)]
# A weight of a loss, a norm of a gradient.
Weight: TypeAlias = Annotated[float, Meta(ge=0, le=1e9)]
Noise: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
Fraction: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Seed: TypeAlias = Annotated[int, Meta(ge=0, lt=2**31)]
# A range [low, high] that values are drawn from.
Range: TypeAlias = tuple[Positive, Positive]


# The kinds of random field, by number.
FIELDS = ("smooth", "noise", "mixed")
Faces: TypeAlias = Literal["none", "random"]


class TwoCells(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="two-cells"):
    """The paper's graphs: an equilateral pair of side 2, T and S uniform in [−1, 1], and the corner cases.

    - `faces`: Dirichlet faces, present or not, with random values; or none, so that a graph has a single edge;
    - `time_step`: one Δt for all graphs;
    - `corner_cases`: G(0,0,0,0), G(1,1,0,0), G(0,0,1,1), G(0,1,0,0), G(1,0,0,0) among the graphs;
    - `negated`: their negatives too, without which nothing drives the update negative in a corner case.
    """

    graphs: Batch = 100
    faces: Faces = "none"
    time_step: Positive = 0.1
    corner_cases: bool = True
    negated: bool = False
    law: str | None = None
    noise: Noise = 0.0


class Pairs(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="pairs"):
    """Random triangle pairs and random Δt, drawn anew at every step: geometry varies, so that it can be identified.

    - `presence`: the chance that an outer face is there; cells with a single message leave f_agg undetermined;
    - `time_step`: Δt is uniform in this range, in units where a cell's mean volume is 1;
    - `common`: how much of the temperatures' range is a level common to the whole pair, boundary included: without it
      T_P alone tells the sign of most fluxes, and networks that learn |flux| first stay there;
    - `stretch`: how far corners stray from the equilateral pair, in units of its side;
    - `size`: range of the pair's mean volume.
    """

    faces: Faces = "random"
    presence: Fraction = 0.8
    time_step: Range = (0.01, 0.2)
    common: Fraction = 0.5
    stretch: Annotated[float, Meta(ge=0, le=0.35)] = 0.3
    size: Range = (0.5, 2.0)
    law: str | None = None
    noise: Noise = 0.0


class Meshes(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="meshes"):
    """An ensemble of unstructured meshes of the unit square with random fields, sources and boundary values.

    - `files`: mesh files instead of generated ones, relative to the recipe's own folder;
    - `fields`: smooth random ones, white noise, and mixtures of both, in equal shares;
    - `fourier`: Δt is uniform in this range, in units of each mesh's reference step: the Fourier step of heat;
    - `target`: what the answers are: one `step` of the first-order scheme, or the same mesh `resolved` in time by many
      substeps, to `tolerance` for every mode of diffusion: exp(Δt L) T of a linear equation;
      or `refined`: the same cells divided into four again and again, at most `levels` times, until the answers of two
      levels differ by at most `tolerance` of the change, and averaged back; a fixed set of problems on each mesh;
    - `cell_size`: range of the cells' mean size, log-uniform, in the units of the equation's parameters: with transport
      or a reaction beside diffusion, a mesh of other cells is another problem; heat alone does not know its size;
    - `jumps`: parameters given per cell are multiplied by factors of up to this either way, drawn cell by cell.
    """

    meshes: MeshCount = 100
    cells: tuple[Cells, Cells] = (100, 600)
    kinds: Annotated[tuple[Literal["regular", "irregular"], ...], Meta(min_length=1)] = ("regular", "irregular")
    engine: Literal["auto", "gmsh", "builtin"] = "auto"
    fields: Annotated[tuple[Literal["smooth", "noise", "mixed"], ...], Meta(min_length=1)] = (
        "smooth",
        "noise",
        "mixed",
    )
    fourier: Range = (0.05, 0.5)
    target: Literal["step", "resolved", "refined"] = "step"
    tolerance: Annotated[float, Meta(ge=1e-12, le=0.5)] = 1e-6
    levels: Annotated[int, Meta(ge=1, le=5)] = 3
    cell_size: Range = (1.0, 1.0)
    jumps: Annotated[float, Meta(ge=1, le=1e6)] = 1.0
    files: tuple[str, ...] | None = None
    law: str | None = None
    noise: Noise = 0.0


class Experiment(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="experiment"):
    """Two cells and the face between them, the equation solved there by brute force, and the flux measured.

    - `samples`: experiments, a fifth of which are held out of training;
    - `states`: range of the unknown in both cells; by default half a unit around the points where f' = 0, and [-1, 1]
      where f is linear or zero;
    - `values`: range of positive parameters, `distances`: range of the distances from the face; log-uniform both;
    - `jump`: parameters and distances differ between the cells; otherwise both cells have the same, δ apart;
    - `velocity`: largest |a·n|; `peclet`: largest |a·n| δ/K instead, where the equation has both;
    - `tolerance`: error, relative to the size of the fluxes, up to which the grid is refined;
    - `law`: a formula of the flux in place of the solution, for decoys;
    - `noise`: standard deviation of normal noise on the fluxes, in units of their root mean square.
    """

    samples: Annotated[int, Meta(ge=100, le=1_000_000)] = 2_000
    states: tuple[Signed, Signed] | None = None
    values: Range = (0.3, 3.0)
    distances: Range = (0.3, 3.0)
    jump: bool = True
    velocity: Positive = 1.0
    peclet: Positive | None = None
    tolerance: Annotated[float, Meta(ge=1e-12, le=0.1)] = 1e-4
    law: str | None = None
    noise: Noise = 0.0


class Rows(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="rows"):
    """Periodic rows of 64 cells under transport, with random profiles whose exact cell averages are known.

    - `profiles`: `random` ones, boxes, triangles, Gaussians and sines drawn anew for every batch; or a `single` one
      that every batch repeats, a decoy that the test on fresh profiles has to detect;
    - `stencil`: cells that φ sees at a face, 3 for the ratio r of the upwind difference, 4 for that of the downwind
      difference too, q;
    - `refit`: rows of each generation in which the constants of a closed form are fitted;
    - `law`, `noise`: none, since the answers are the exact averages.
    """

    profiles: Literal["random", "single"] = "random"
    stencil: Literal[3, 4] = 3
    refit: Batch = 24
    law: str | None = None
    noise: Annotated[float, Meta(ge=0, le=0)] = 0.0


class Skew(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="skew"):
    """Faces between cells of skewed meshes, with the exact fluxes of random polynomial and harmonic fields.

    - `samples`: faces with a field each, drawn from `meshes` meshes of about `cells` cells with `fields` fields each;
    - `aspect`: every other group of meshes is stretched at random up to this ratio;
    - `law`: a formula of rise = (T_N − T_P)/δ, normal = ḡ·n, along = ḡ·d/δ, cosine, nu, contrast and flux, the exact
      one, in place of the flux, for decoys;
    - `noise`: standard deviation of normal noise on the fluxes, in units of their root mean square;
    - `problems`: steady problems that the search solves on each of its meshes; three times as many others are solved on
      each of the eight meshes per family and size on which its choices are validated;
    - `conductivity`: that of these problems; `weighted-tensor` has a tensor in the angles of ψ too. Fluxes are those of
      k = 1.
    """

    samples: Annotated[int, Meta(ge=500, le=1_000_000)] = 12_000
    meshes: Annotated[int, Meta(ge=4, le=10_000)] = 24
    cells: Cells = 200
    fields: Annotated[int, Meta(ge=2, le=1_000)] = 4
    aspect: Annotated[float, Meta(ge=1, le=100)] = 5.0
    law: str | None = None
    noise: Noise = 0.0
    problems: Annotated[int, Meta(ge=1, le=10_000)] = 64
    conductivity: Literal["scalar", "tensor", "weighted-tensor", "jump"] = "scalar"


Data: TypeAlias = TwoCells | Pairs | Meshes | Experiment | Rows | Skew
