"""Two small parts of a made-up paper, which count how often they are run."""

from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

from matplotlib.figure import Figure

from fluxforge.paper import Drawn, Part, Sentence

SENTENCES = (
    Sentence("one", "1", "the first counts", (("first", "first counts"),)),
    Sentence("both", "2", "both count", (("first", "first counts"), ("second", "second counts"))),
    Sentence("neither", "3", "nobody knows", why="nobody can"),
)


@dataclass(frozen=True)
class Config:
    preset: str = "quick"
    changes: dict[str, Any] = field(default_factory=dict)
    size: int = 3


class Toy:
    """An experiment that takes no time."""

    def __init__(self, name: str, verdict: str = "holds") -> None:
        self.name, self.verdict, self.runs, self.Config = name, verdict, 0, Config

    def run(self, config: Config, folder: Path | None, tell: Any, warn: Any) -> dict[str, Any]:
        self.runs += 1
        tell("counting", self.runs, self.runs)
        claim = {"name": f"{self.name} counts", "text": "…", "verdict": self.verdict, "evidence": f"run {self.runs}"}
        rows = [{"step": 0.5**k, "error": 0.25**k} for k in range(config.size)]
        return {"experiment": self.name, "rows": rows, "environment": {"numpy": "2"}, "claims": [claim]}


def drawing(document: Any) -> Figure:
    figure = Figure(figsize=(3, 2))
    axes = figure.add_subplot()
    axes.plot([row["step"] for row in document["rows"]], [row["error"] for row in document["rows"]])
    return figure


def part(module: Toy, **more: Any) -> Part:
    figures = {f"{module.name}-figure": Drawn(drawing, f"Errors of {module.name}.", ("rows",))}
    shape = SimpleNamespace(Config=module.Config, run=module.run, check=lambda _: [])
    return Part(shape, "1", f"what {module.name} does", "It counts.", figures, **more)


def parts(first: Toy, second: Toy) -> Any:
    return MappingProxyType({"first": part(first, recipes=("first-order",)), "second": part(second, after=("first",))})
