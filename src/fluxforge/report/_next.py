"""What reports of all kinds show of a run's scheme: its certificate, commands that use it or repeat the run, files."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fluxforge.certify._certificate import Certificate
from fluxforge.certify._summary import summarise
from fluxforge.pde._parameter import Rank
from fluxforge.report._certificate_page import typeset_lines
from fluxforge.run._outputs import OutputNames, name_outputs
from fluxforge.run.carry import CarryResult
from fluxforge.run.limiter import LimiterResult
from fluxforge.run.result import Discovery
from fluxforge.run.skew import SkewResult
from fluxforge.scheme._scheme import Scheme

# Values that a command gives parameters without a default.
EXAMPLES = {Rank.SCALAR: "1", Rank.VECTOR: "(1, 0.5)", Rank.TENSOR: "((2, 0), (0, 1))"}
# Options that are removed from the command of a run to repeat it, and whether a value follows each.
REPLACED_OPTIONS = {"-o": True, "--output": True, "--seed": True, "--overwrite": False, "--json": False}


MESH, INITIAL = "square --cells 2000", "sin(pi*x)*sin(pi*y)"


def describe_scheme(
    result: Discovery | CarryResult | LimiterResult | SkewResult,
    scheme: Scheme | None,
    certificate: Certificate | None,
    figures: Iterable[tuple[str, str]] = (),
    *,
    command: str,
    metrics: bool = False,
    mesh: str = MESH,
    initial: str = INITIAL,
) -> dict[str, Any]:
    """The variables of a page about a run's scheme: its certificate, and the commands and files at the end.

    `command` is the one that started the run, `figures` and `metrics` are those of `list_files`, `mesh` and `initial`
    those of `scheme_commands`.
    """
    names = name_outputs(result)
    return {
        "certificate": certificate,
        "lines": [] if certificate is None else typeset_lines(certificate),
        "summary": "" if certificate is None or scheme is None else summarise(certificate, scheme),
        "command": command,
        "next": [
            *([] if scheme is None else scheme_commands(scheme, names.scheme, mesh=mesh, initial=initial)),
            *run_commands(result.recipe, result.seed, command),
        ],
        "files": list_files(scheme, names, figures, metrics=metrics),
    }


def scheme_commands(
    scheme: Scheme,
    name: str,
    *,
    mesh: str = MESH,
    initial: str = INITIAL,
    parameters: Mapping[str, object] | None = None,
) -> list[tuple[str, str]]:
    """Commands about a scheme, each with a description, that work one after the other in the folder of the run.

    `name` is that of the scheme's file. Parameters without a default or a value in `parameters` get an example.
    """
    unset = {p.name: EXAMPLES[p.rank] for p in scheme.equation.parameters if p.default is None}
    given = {each: format_setting(value) for each, value in (parameters or {}).items()}
    settings = "".join(f" --set {shlex.quote(f'{each}={value}')}" for each, value in (unset | given).items())
    start = f"--initial {shlex.quote(initial)}{settings}"
    return [
        ("Make a mesh", f"fluxforge mesh {mesh} -o mesh.msh"),
        ("Simulate with this scheme", f"fluxforge simulate {name} --mesh mesh.msh {start} -o simulation"),
        ("Verify it in full, on larger meshes", f"fluxforge verify {name} -o certificate"),
        ("Export it as C", f"fluxforge export {name} --to c -o scheme.c"),
    ]


def format_setting(value: object) -> str:
    """A number, or a vector or tensor as nested sequences, as `--set` reads it: all digits, in round brackets."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"({', '.join(map(format_setting, value))})"
    return f"{value:.17g}" if isinstance(value, float) else str(value)


def list_files(
    scheme: Scheme | None, names: OutputNames, figures: Iterable[tuple[str, str]] = (), *, metrics: bool = False
) -> list[tuple[str, str]]:
    """The files beside a page with descriptions: `names` are those of a scheme and its certificate.

    `figures` are names and what they show; `metrics` says whether the loss was recorded.
    """
    figures = list(figures)
    files = [
        (names.scheme, "the scheme, which every command reads", scheme is not None),
        (names.certificate, "its certificate", scheme is not None),
        ("front.csv", "all candidates, not rounded", any(name == "front" for name, _ in figures)),
        ("metrics.jsonl", "the loss at every recorded step", metrics),
        ("run.json", "the recipe of the run and its command", True),
        *((f"{name}.svg", f"{what}, also as PNG", True) for name, what in figures),
    ]
    return [(name, what) for name, what, present in files if present]


def run_commands(recipe: str, seed: int, command: str) -> list[tuple[str, str]]:
    """Commands that continue or repeat a run of a recipe, started by `command`, each with a description."""
    return [
        ("Write missing files of this folder again, or finish an interrupted run", "fluxforge discover --resume ."),
        (
            "Repeat the run with another seed, in the folder where this run was started",
            _repeat(recipe, seed + 1, command),
        ),
    ]


def _repeat(recipe: str, seed: int, command: str) -> str:
    """The command of a run with another seed and another output folder."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if words[:2] != ["fluxforge", "discover"] or "--resume" in words:
        words = ["fluxforge", "discover", recipe]
    kept, skip = [], False
    for word in words:
        if not skip and word.partition("=")[0] not in REPLACED_OPTIONS:
            kept.append(word)
        skip = not skip and REPLACED_OPTIONS.get(word, False)
    return shlex.join([*kept, "--seed", str(seed), "-o", f"{recipe}-seed-{seed}"])
