"""The parts of the paper, in its order: the experiment of each, its figures, and the text that describes them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, runtime_checkable

from matplotlib.figure import Figure
from msgspec import Struct

import fluxforge.paper.studies.consistency as consistency
import fluxforge.paper.studies.controls as controls
import fluxforge.paper.studies.convergence as convergence
import fluxforge.paper.studies.generalisation as generalisation
import fluxforge.paper.studies.higher_order as higher_order
import fluxforge.paper.studies.memory as memory
import fluxforge.paper.studies.rates as rates
import fluxforge.paper.studies.setup as setup
import fluxforge.paper.studies.symbolic as symbolic
import fluxforge.paper.studies.theorems as theorems
from fluxforge.paper import figures
from fluxforge.paper.studies import Claim, read_result, to_document
from fluxforge.pipeline import Progress
from fluxforge.report import Table, extrapolation_figure, generalisation_figure

Document: TypeAlias = dict[str, Any]  # The result of an experiment with its claims, as JSON types.
Warn = Callable[[str], None]


@runtime_checkable
class Module(Protocol):
    """The module of an experiment."""

    @property
    def Config(self) -> Callable[..., Any]:
        """The class of its options, which have `preset` and `changes`."""

    @property
    def Result(self) -> type[Struct]:
        """The record that a run returns."""

    @property
    def run(self) -> Callable[..., Any]:
        """Run it: (config, folder, tell, warn) → a Result."""

    @property
    def judge(self) -> Callable[[Any], list[Claim]]:
        """Judge the paper's claims by a Result."""


@dataclass(frozen=True)
class Drawn:
    """A figure of a part: the function that draws a Result, its caption, and the document's keys with its numbers."""

    draw: Callable[[Any], Figure]
    caption: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """One experiment with its description, figures and table.

    `recipes` it trains with, at the part's preset unless `recipe_preset` names another, and `after`, the parts whose
    results it uses, are inputs. `version` is increased when the same inputs give other numbers.
    """

    module: Module
    section: str
    summary: str
    methods: str
    figures: Mapping[str, Drawn]
    recipes: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    version: int = 1
    recipe_preset: str | None = None
    table: Callable[[Any], Table] | None = None

    def read(self, document: Document) -> Struct:
        """The result of a document; raises DocumentError if a field is missing or of another type."""
        return read_result(document, self.module.Result)

    def judge(self, document: Document) -> list[Claim]:
        """The claims of a document, judged anew."""
        return self.module.judge(self.read(document))

    def run(self, config: Any, folder: Path | None, tell: Progress, warn: Warn) -> Document:
        """Run the experiment and judge its claims."""
        result = self.module.run(config, folder, tell, warn)
        return to_document(result, self.module.judge(result))


PARTS: Mapping[str, Part] = MappingProxyType(
    {
        "setup": Part(
            setup,
            "2–5",
            "what networks are trained on, and what they see: two cells, meshes, messages over one hop and two",
            "The two-cell mesh of the training set and the meshes of section 5 are made as every other part makes "
            "them; areas, lengths and distances are measured on them. Cells are coloured by their determinant, twice "
            "their area, over the largest of the irregular mesh.",
            {
                "training-data": Drawn(
                    figures.training_data_figure,
                    "A graph of the training set: two equilateral triangles of side 2, what their nodes and their edge "
                    "carry, and the temperatures before and after one step.",
                    ("two_cells",),
                ),
                "message-passing": Drawn(
                    figures.message_passing_figure,
                    "One round of message passing: an edge is updated from its own features and those of both cells, a "
                    "cell from its own and the sum of its edges'; right, what has reached a cell after one round.",
                    ("patches",),
                ),
                "sample-meshes": Drawn(
                    figures.sample_meshes_figure,
                    "A regular and an irregular mesh as networks of section 5 are trained on, coloured by cell size.",
                    ("samples", "ensemble"),
                ),
                "two-hop-neighbourhood": Drawn(
                    figures.two_hop_figure,
                    "The cells that a two-hop network hears from: neighbours, and neighbours of neighbours by every "
                    "path. Paths that return to the cell itself are among them.",
                    ("patches",),
                ),
            },
        ),
        "generalisation": Part(
            generalisation,
            "4.4",
            "networks trained on two cells, with and without sparsity, on meshes they have not seen",
            "Two-layer networks of width 32 are trained on 100 two-cell graphs as the paper says, sixteen seeds with "
            "an ℓ¹ penalty and sixteen without, three times: with a learning rate that decays, with Dirichlet faces in "
            "the training set, and exactly as printed. Each then makes one step and fifty on 100 meshes of "
            "about 300 cells, and longer steps, with larger temperatures and other boundaries than in training.",
            {
                "generalisation": Drawn(
                    lambda result: generalisation_figure(
                        {"sparse": result.sparse, "dense": result.dense}, result.seeds
                    ),
                    "With the penalty (left) and without it (right): training error, one step and fifty steps on "
                    "unseen meshes, and the weights of the last layer of the update.",
                    ("summary", "sparse", "dense"),
                ),
                "extrapolation": Drawn(
                    lambda result: extrapolation_figure(result.extrapolation),
                    "Extrapolation of both kinds of network: longer steps, larger temperatures, other boundaries.",
                    ("extrapolation",),
                ),
            },
            recipes=("generalisation",),
        ),
        "theorems": Part(
            theorems,
            "4.2–4.3, A–C",
            "the lemma's weights, the counterexamples, and both error bounds on trained networks",
            "The weights of the lemmas are built and tried on 200 meshes. Both bounds are computed for networks "
            "trained as the theorems ask and compared with the worst error on those meshes; where a hypothesis of a "
            "theorem does not hold for a network, that is told apart. Counterexamples are constructed and run.",
            {
                "theorems": Drawn(
                    figures.theorems_figure,
                    "Errors over bounds of trained networks, the counterexamples, and stable steps over Fourier steps.",
                    ("lemma", "counterexamples", "fourier", "minimality"),
                )
            },
            recipes=("generalisation",),
            version=2,
        ),
        "rates": Part(
            rates,
            "1, 4.6, 5",
            "how often each shipped recipe finds what it expects, over several seeds",
            "The recipes first-order, first-order-pinn, midpoint and two-hop are run as they are shipped, five times "
            "each (ten times with --preset paper), with one seed after the other and nothing else changed. The "
            "claims about trained networks in other parts are judged by these rates. A seed counts as recovered, as an "
            "approximation or as refused by the verdict of its own discovery.",
            {
                "rates": Drawn(
                    figures.rates_figure,
                    "Seeds of each recipe by the verdict of their discovery, and the least part of the network's own "
                    "step that its formula explains, over the time steps tried.",
                    ("recipes",),
                )
            },
            recipes=rates.RECIPES,
            recipe_preset="quick",
            table=figures.rates_table,
        ),
        "controls": Part(
            controls,
            "4.5, 5",
            "whether the judge of discoveries accepts wrong formulas: other laws, fake and perturbed networks",
            "Networks are trained on the data of other exchange laws, with the first-order recipe at reduced size, and "
            "schemes that are none of the expected ones are put in the place of trained networks. Each goes through "
            "the search and the judge of every discovery. A decoy fools the judge if it is recovered though it must "
            "not be, or as another law than that of its data, which is decided by comparing coefficients. True "
            "laws have to be recovered: heat, an α that is 4 % off, heat with 1 % of noise, a gauge.",
            {},
            recipes=("first-order", "midpoint"),
            version=2,
            recipe_preset="quick",
            table=figures.controls_table,
        ),
        "symbolic": Part(
            symbolic,
            "4.5–4.6",
            "formulas from networks: how often the first-order scheme is found, and what a residual finds",
            "Networks with the primitive features of section 4.5 are trained, their message and update functions "
            "sampled and searched for formulas; a formula counts as recovered if its structure is that of the scheme "
            "and its constants, refitted, are the scheme's. From the residual loss the constants of least residual are "
            "followed to small steps.",
            {
                "symbolic": Drawn(
                    figures.symbolic_figure,
                    "Fronts of complexity and error of f_agg and f_up, and the losses of networks and formulas.",
                    ("recovery", "rows", "fronts"),
                ),
                "constant-against-step": Drawn(
                    figures.pinn_figure,
                    "The constants of least residual depend on the step: flux and source against Δt, for three θ.",
                    ("against_step",),
                ),
            },
            recipes=("first-order", "first-order-pinn"),
            after=("rates",),
            version=2,
        ),
        "higher-order": Part(
            higher_order,
            "5",
            "what two layers, two hops and four layers learn from the residual of the heat equation alone",
            "Two-layer and two-hop networks are trained on 100 meshes with the residual and nothing else, read through "
            "their stencils, and their constants refitted in the limit of small steps. The same constants are found "
            "without any network by minimising the residual directly. Further networks: θ = 0 and 1, as printed, and "
            "four layers.",
            {
                "constants": Drawn(
                    figures.constants_figure,
                    "Where the paper's ½ comes from: the constants of two layers against the step, for θ = 0, ½ and 1, "
                    "from training and from direct minimisation.",
                    ("direct", "networks"),
                ),
                "four-layers": Drawn(
                    figures.four_layers_figure,
                    "Four layers: the residual of the trapezoidal rule asks for its own series, a fourth-order "
                    "residual for the classical Runge–Kutta method.",
                    ("direct_four",),
                ),
                "residuals": Drawn(
                    figures.residuals_figure,
                    "Residuals of networks and schemes on meshes that no network has seen, against the step.",
                    ("networks",),
                ),
            },
            recipes=("midpoint", "two-hop"),
            after=("rates",),
            version=3,
        ),
        "convergence": Part(
            convergence,
            "5.2",
            "residuals, errors in time and space, and seconds of every scheme, over mesh size and time step",
            "Every scheme, and the two networks where they are trained, on irregular meshes with steps from 1/16 to 8 "
            "Fourier steps: the residual after one step, the error against the exact solution of the semi-discrete "
            "equations, the error against the heat equation, and the seconds it took.",
            {
                "convergence": Drawn(
                    figures.residual_map,
                    "Residual over mesh size and time step. Lines: the Fourier step, each scheme's true limit, and "
                    "where Crank–Nicolson begins to oscillate.",
                    ("rows", "meshes"),
                ),
                "convergence-as-printed": Drawn(
                    figures.printed_residual_map, "The same with the residual as printed, θ = 1.", ("rows", "meshes")
                ),
                "errors": Drawn(
                    figures.errors_figure,
                    "Errors in time and in space, and what an error costs in seconds.",
                    ("rows", "space"),
                ),
            },
            after=("higher-order",),
        ),
        "memory": Part(
            memory,
            "5.2",
            "what every scheme holds in memory, measured and counted, over mesh size and time step",
            "The peak memory of a process per scheme, mesh and time step, less what it was before the scheme was "
            "there, and the bytes of the arrays that the scheme holds. Crank–Nicolson twice: with factors of a sparse "
            "LU, and with conjugate gradients, which need none.",
            {
                "memory": Drawn(
                    figures.memory_figure,
                    "Peak memory against cells, and bytes per cell, measured and counted.",
                    ("rows", "bytes_per_cell"),
                )
            },
        ),
        "consistency": Part(
            consistency,
            "2, 5.2",
            "which equation the schemes solve: effective diffusivity under refinement, and where errors stop falling",
            "The diffusivity that a scheme really has, exactly on periodic lattices and measured on irregular meshes, "
            "under refinement; and the error of steady states with the plain flux and with the corrected one.",
            {
                "diffusivity": Drawn(
                    figures.diffusivity_figure,
                    "Effective diffusivity over α under refinement: 1 is the heat equation that was asked for.",
                    ("families",),
                ),
                "plateau": Drawn(
                    figures.plateau_figure,
                    "Errors of steady states under refinement: the plain flux stops converging where cells are not "
                    "orthogonal; the corrected flux does not.",
                    ("families",),
                ),
            },
        ),
    }
)
