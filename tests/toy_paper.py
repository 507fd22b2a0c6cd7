"""Two small parts of a made-up paper, which count how often they are run."""

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from matplotlib.figure import Figure
from msgspec import Struct

from fluxforge.paper import FigureText, Part, Sentence
from fluxforge.paper.studies import Claim, StudyConfig, Verdict

SENTENCES = (
    Sentence("one", "1", "the first counts", (("first", "first counts"),)),
    Sentence("both", "2", "both count", (("first", "first counts"), ("second", "second counts"))),
    Sentence("neither", "3", "nobody knows", why="nobody can"),
)


@dataclass(frozen=True)
class Config(StudyConfig):
    size: int = 3


class Row(Struct, frozen=True):
    step: float
    error: float


class Result(Struct, frozen=True):
    experiment: str
    rows: list[Row]


class Toy:
    """An experiment that takes no time."""

    def __init__(self, name: str, verdict: Verdict = "holds") -> None:
        self.name, self.verdict, self.runs, self.Config, self.Result = name, verdict, 0, Config, Result

    def run(self, config: Config, folder: Path | None, tell: Any, warn: Any) -> Result:
        self.runs += 1
        tell("counting", self.runs, self.runs)
        return Result(self.name, [Row(0.5**k, 0.25**k) for k in range(config.size)])

    def judge(self, result: Result) -> list[Claim]:
        return [Claim(f"{self.name} counts", "…", self.verdict, f"run {self.runs}")]


def drawing(result: Result) -> Figure:
    figure = Figure(figsize=(3, 2))
    axes = figure.add_subplot()
    axes.plot([row.step for row in result.rows], [row.error for row in result.rows])
    return figure


def part(module: Toy, **more: Any) -> Part:
    title = f"{module.name}-figure"
    figures = {title: FigureText(f"Errors of {module.name}.", ("rows",))}
    words = ("1", f"what {module.name} does", "It counts.", figures)
    return Part(*words, module=module, draw={title: drawing}, **more)


def parts(first: Toy, second: Toy) -> Any:
    return MappingProxyType({"first": part(first, recipes=("first-order",)), "second": part(second, after=("first",))})
