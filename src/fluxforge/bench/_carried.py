"""Steps with local coefficients for benchmarks: formulas stored in the package, and networks of run folders."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge._types import SlotField
from fluxforge.errors import InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._flux_form import FluxNetwork
from fluxforge.mesh._dual import DualGraph
from fluxforge.pde._equation import HEAT
from fluxforge.pipeline._run import load_run
from fluxforge.run.carry import CarryResult
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._tableau import Tableau, rkl2_tableau
from fluxforge.scheme._weighted import formula_scheme, nested_rkl2, nested_tableau
from fluxforge.stepping._frozen_flux import face_coefficients, face_numbers

NAMES = ("total", "contrast", "share")


@dataclass(frozen=True)
class Carried:
    """Local coefficients in the stages of a tableau: formulas of NAMES, or instead of them a network.

    `fourier` is the trained range of Δt, in Fourier steps of the mesh.
    """

    name: str
    tableau: Tableau
    fourier: tuple[float, float]
    formulas: tuple[sp.Expr, ...] = ()
    network: FluxNetwork | None = None

    @property
    def stages(self) -> int:
        """The number of applications of the operator per step."""
        return len(self.tableau.rows)

    def coefficients(self, graph: DualGraph, dt: float) -> list[SlotField]:
        """The coefficients of the stages after the first, each a field over slots, zero in unused slots."""
        if self.network is not None:
            return face_coefficients(self.network, graph, dt, parameters={"alpha": 1.0})
        numbers = {symbol(name): each for name, each in face_numbers(HEAT, graph, dt).items()}
        with np.errstate(all="ignore"):
            values = [np.broadcast_to(evaluate(each, numbers, np), graph.slot_mask.shape) for each in self.formulas]
        return [np.where(graph.slot_mask, each, 0.0) for each in values]

    def scheme(self) -> Scheme:
        """The formulas as a scheme of the heat equation."""
        by_tag = {str(k): each for k, each in enumerate(self.formulas, start=2)}
        summary = f"{self.tableau.summary} with coefficients of faces, distilled from a network"
        return formula_scheme(self.name, self.tableau, HEAT, by_tag, summary=summary)


@cache
def kept_formulas() -> Mapping[str, Carried]:
    """The formulas of `carried.toml`, by name."""
    table = tomllib.loads((files("fluxforge.bench") / "carried.toml").read_text(encoding="utf-8"))
    formulas_by_name = {}
    for name, row in table.items():
        formulas = _parse_all(row["coefficients"])
        low, high = row["fourier"]
        formulas_by_name[name] = Carried(name, _tableau(row["integrator"], len(formulas) + 1), (low, high), formulas)
    return MappingProxyType(formulas_by_name)


def read_carried(folder: Path) -> list[Carried]:
    """The network of a finished run in the form of a flux for heat, and its formulas if it has any.

    Raises InputError for any other run.
    """
    run = load_run(folder)
    spec, result = run.recipe, run.result
    if not isinstance(result, CarryResult) or not isinstance(spec.data, recipe.Meshes):
        raise InputError(
            f"{folder}: its network is not in the form of a flux; 'bench time' compares only such networks"
        )
    if result.equation != HEAT.name:
        raise InputError(f"{folder}: its equation is {result.equation!r}; 'bench time' compares steps of 'heat'")
    network = run.network.network
    assert isinstance(network, FluxNetwork)
    label = Path(folder).name
    carried = [Carried(f"network {label}", network.tableau, spec.data.fourier, network=network)]
    if result.coefficients:
        formulas = _parse_all(list(result.coefficients.values()))
        carried.append(Carried(f"formula {label}", network.tableau, spec.data.fourier, formulas))
    return carried


def _parse_all(texts: Sequence[str]) -> tuple[sp.Expr, ...]:
    return tuple(parse(text, NAMES) for text in texts)


def _tableau(integrator: str, stages: int) -> Tableau:
    return {"nested": nested_tableau, "rkl2": rkl2_tableau, "rkl2-nested": nested_rkl2}[integrator](stages)
