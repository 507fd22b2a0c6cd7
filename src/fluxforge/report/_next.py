"""What stands at the end of a report: commands about its scheme, and the files beside the page."""

import shlex
from collections.abc import Iterable

from fluxforge.pde._parameter import Rank
from fluxforge.scheme._scheme import Scheme

# Values that a command gives parameters without a default.
EXAMPLES = {Rank.SCALAR: "1", Rank.VECTOR: "(1, 0.5)", Rank.TENSOR: "((2, 0), (0, 1))"}


def scheme_commands(
    scheme: Scheme, *, accepted: bool, mesh: str = "square --cells 2000", initial: str = "sin(pi*x)*sin(pi*y)"
) -> list[tuple[str, str]]:
    """Commands to copy, each with what it does; they work one after the other in the folder of the run."""
    name = scheme_name(accepted=accepted)
    unset = [p for p in scheme.equation.parameters if p.default is None]
    settings = "".join(f" --set {shlex.quote(f'{p.name}={EXAMPLES[p.rank]}')}" for p in unset)
    start = f"--initial {shlex.quote(initial)}{settings}"
    return [
        ("Make a mesh", f"fluxforge mesh {mesh} -o mesh.msh"),
        ("Run the scheme on it", f"fluxforge simulate {name} --mesh mesh.msh {start} -o simulation"),
        ("Verify it in full, on larger meshes", f"fluxforge verify {name} -o certificate"),
        ("Export it as C", f"fluxforge export {name} --to c -o scheme.c"),
    ]


def scheme_name(*, accepted: bool) -> str:
    """The name under which a run keeps its scheme: it says whether the formula was accepted."""
    return "scheme.json" if accepted else "candidate.json"


def list_files(
    scheme: Scheme | None, figures: Iterable[tuple[str, str]] = (), *, accepted: bool, metrics: bool = False
) -> list[tuple[str, str]]:
    """The files beside a page and what they hold; `figures` are names and what they show."""
    files = [
        (scheme_name(accepted=accepted), "the scheme, which every command reads", scheme is not None),
        ("certificate.json" if accepted else "candidate-certificate.json", "its certificate", scheme is not None),
        ("metrics.jsonl", "the loss at every recorded step", metrics),
        ("run.json", "the recipe of the run and its command", True),
        *((f"{name}.svg", f"{what}, also as PNG", True) for name, what in figures),
    ]
    return [(name, what) for name, what, present in files if present]
