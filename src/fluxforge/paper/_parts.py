"""The parts of the paper, in its order: the experiment of each, its figures, and the text that describes them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from matplotlib.figure import Figure
from msgspec import Struct, toml

from fluxforge.paper import figures
from fluxforge.paper.studies import (
    consistency,
    controls,
    convergence,
    generalisation,
    higher_order,
    memory,
    rates,
    setup,
    symbolic,
    theorems,
)
from fluxforge.paper.studies._records import Claim, read_result, to_document
from fluxforge.report._arms_figures import extrapolation_figure, generalisation_figure
from fluxforge.report._tables import Table
from fluxforge.run._progress import Progress, Warn
from fluxforge.run._record import Document


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


class FigureText(Struct, frozen=True, forbid_unknown_fields=True):
    """The caption of a figure, and the keys of the document with its numbers."""

    caption: str
    keys: tuple[str, ...]


class PartText(Struct, frozen=True, forbid_unknown_fields=True):
    """What parts.toml says of a part; see `Part`."""

    section: str
    summary: str
    methods: str
    figures: dict[str, FigureText] = {}
    recipes: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    version: int = 1
    recipe_preset: str | None = None


MODULES: Mapping[str, Module] = {
    "setup": setup,
    "generalisation": generalisation,
    "theorems": theorems,
    "rates": rates,
    "controls": controls,
    "symbolic": symbolic,
    "higher-order": higher_order,
    "convergence": convergence,
    "memory": memory,
    "consistency": consistency,
}
DRAW: Mapping[str, Callable[[Any], Figure]] = {
    "training-data": figures.training_data_figure,
    "message-passing": figures.message_passing_figure,
    "sample-meshes": figures.sample_meshes_figure,
    "two-hop-neighbourhood": figures.two_hop_figure,
    "generalisation": lambda result: generalisation_figure(
        {"sparse": result.sparse, "dense": result.dense}, result.seeds
    ),
    "extrapolation": lambda result: extrapolation_figure(result.extrapolation),
    "theorems": figures.theorems_figure,
    "rates": figures.rates_figure,
    "symbolic": figures.symbolic_figure,
    "constant-against-step": figures.pinn_figure,
    "constants": figures.constants_figure,
    "four-layers": figures.four_layers_figure,
    "residuals": figures.residuals_figure,
    "convergence": figures.residual_map,
    "convergence-as-printed": figures.printed_residual_map,
    "errors": figures.errors_figure,
    "memory": figures.memory_figure,
    "diffusivity": figures.diffusivity_figure,
    "plateau": figures.plateau_figure,
}
TABLES: Mapping[str, Callable[[Any], Table]] = {"rates": figures.rates_table, "controls": figures.controls_table}


def _read_parts() -> dict[str, Part]:
    text = files("fluxforge.paper").joinpath("parts.toml").read_bytes()
    return {
        name: Part(
            MODULES[name],
            each.section,
            each.summary,
            each.methods,
            {title: Drawn(DRAW[title], own.caption, own.keys) for title, own in each.figures.items()},
            recipes=each.recipes,
            after=each.after,
            version=each.version,
            recipe_preset=each.recipe_preset,
            table=TABLES.get(name),
        )
        for name, each in toml.decode(text, type=dict[str, PartText]).items()
    }


PARTS: Mapping[str, Part] = MappingProxyType(_read_parts())
