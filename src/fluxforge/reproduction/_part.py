"""A part of the paper: how it is run, and what is drawn from its result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from matplotlib.figure import Figure

from fluxforge.discover import Progress
from fluxforge.experiments import Claim
from fluxforge.report import Table

Document = Mapping[str, Any]
Warn = Callable[[str], None]


@runtime_checkable
class Module(Protocol):
    """What the file of an experiment has."""

    @property
    def Config(self) -> Callable[..., Any]:
        """Its options, of which all have `preset` and `changes`."""

    @property
    def run(self) -> Callable[..., dict[str, Any]]:
        """The experiment: config, folder, tell, warn → a document with claims."""

    @property
    def check(self) -> Callable[[Document], list[Claim]]:
        """The claims judged from a document."""


@dataclass(frozen=True)
class Drawn:
    """A figure of a part: how it is drawn from the document, what it shows, and which keys hold its numbers."""

    draw: Callable[[Document], Figure]
    caption: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """One experiment, with words for those who read its results.

    `recipes` are those it trains by, and `after` the parts whose results it uses where they are in the same folder:
    all of them are inputs; recipes are those of the part's preset unless `recipe_preset` names another. A `version` is
    counted up when the same inputs give other numbers. `table` is shown on the page, above the figures.
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
    table: Callable[[Document], Table] | None = None

    def run(
        self, preset: str, changes: Mapping[str, Any], folder: Path | None, tell: Progress, warn: Warn
    ) -> dict[str, Any]:
        """The part's document."""
        return self.module.run(self.module.Config(preset=preset, changes=changes), folder, tell, warn)
