"""Pairs of neighbouring cells on skewed meshes with the exact flux through their face.

A row of a table is a face between two cells and a field: values that a flux may depend on, as numbers that no rotation
changes, and the mean of ∇T·n over the face. Rows are divided by the size of the field's gradient on the mesh, so that
all fields have the same weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.errors import ExpressionError, InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import symbols_of
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.skew._flux import FluxOperator
from fluxforge.skew._problems import KINDS, Field, make_mesh, random_harmonic, random_polynomial, stretch_mesh

COLUMNS = ("rise", "normal", "along")
INPUTS = ("cosine", "nu", "contrast")
LAW_NAMES = (*COLUMNS, *INPUTS, "flux")
"""The names in a law that replaces the exact flux: the columns, the invariants, and the exact flux itself."""

Rows = Float[np.ndarray, " rows"]
# Gauss's three points on [−1, 1]: exact for the gradients of cubic fields.
_GAUSS = (np.array([-np.sqrt(0.6), 0.0, np.sqrt(0.6)]), np.array([5.0, 8.0, 5.0]) / 18.0)


@dataclass(frozen=True, eq=False)
class FaceTable:
    """The rows of a table.

    - `inputs`: `INPUTS`, the invariants of the face;
    - `columns`: (T_N − T_P)/δ, ḡ·n and ḡ·d/δ with the mean ḡ of the least-squares gradients;
    - `flux`: the target of the training, F/A.
    """

    inputs: Float[np.ndarray, "rows 3"]
    columns: Float[np.ndarray, "rows 3"]
    flux: Rows

    def __len__(self) -> int:
        return len(self.flux)

    @property
    def size(self) -> float:
        """Root mean square of the flux."""
        return float(np.sqrt(np.mean(self.flux**2)))

    def select(self, rows: np.ndarray) -> "FaceTable":
        """The given rows as a table."""
        return FaceTable(self.inputs[rows], self.columns[rows], self.flux[rows])


def tabulate_faces(graph: DualGraph, fields: Sequence[Field]) -> FaceTable:
    """All faces between two cells, for all fields; gradients use the fields' values at the centres of walls."""
    operator, inner = FluxOperator(graph), slice(0, graph.interior)
    nodes = np.concatenate([graph.x, graph.centre[graph.interior :]])
    directions = (graph.n, graph.d / graph.delta[:, None])
    n, delta = graph.n[inner], graph.delta[inner]
    tangent = np.stack([-n[:, 1], n[:, 0]], axis=1)
    at = graph.centre[inner, None, :] + 0.5 * (graph.A[inner, None] * _GAUSS[0])[..., None] * tangent[:, None, :]
    columns, fluxes = [], []
    for field in fields:
        T = field.value(nodes)
        size = float(np.sqrt(np.mean(field.gradient(graph.x) ** 2)))
        parts = [operator.rise @ T, *(operator.along(v) @ T for v in directions)]
        rise, normal, along = (part[inner] / size for part in parts)
        columns.append(np.stack([rise / delta, normal, along], axis=1))
        fluxes.append(np.einsum("fgk,fk,g->f", field.gradient(at), n, _GAUSS[1]) / size)
    invariants = operator.invariants
    inputs = np.stack([each[inner] for each in (invariants.cosine, invariants.nu, invariants.contrast)], axis=1)
    return FaceTable(np.tile(inputs, (len(fields), 1)), np.concatenate(columns), np.concatenate(fluxes))


def data_meshes(count: int, cells: int, aspect: float, seed: int) -> tuple[Mesh, ...]:
    """`count` meshes of about `cells` cells; kinds alternate, and every second round is stretched up to `aspect`."""
    rng = np.random.default_rng(seed)
    meshes = []
    for k in range(count):
        kind = KINDS[k % len(KINDS)]
        n = max(4, round(np.sqrt(cells / (1 if kind == "quadrilaterals" else 2))))
        most = aspect if (k // len(KINDS)) % 2 else 1.0
        stretched = stretch_mesh(kind, n, seed + k, float(most ** rng.random()), float(rng.uniform(-0.5, 0.5)))
        meshes.append(make_mesh(kind, n, seed + k) if most == 1.0 else stretched.mesh)
    return tuple(meshes)


def read_law(text: str) -> sp.Expr:
    """The formula of a law of `LAW_NAMES` in place of the exact flux; raises InputError for any other."""
    try:
        return parse(text, symbols_of(LAW_NAMES))
    except ExpressionError as error:
        raise InputError(f"field 'data.law': {error}") from error


def apply_law(table: FaceTable, law: sp.Expr | None, noise: float, seed: int) -> FaceTable:
    """The table with the fluxes of a law (None: its own), and with normal noise in units of the fluxes' size."""
    flux = table.flux
    if law is not None:
        names = dict(zip(COLUMNS, table.columns.T, strict=True)) | dict(zip(INPUTS, table.inputs.T, strict=True))
        values = {symbol: names.get(name, table.flux) for name, symbol in symbols_of(LAW_NAMES).items()}
        flux = np.broadcast_to(np.asarray(evaluate(law, values, np), float), flux.shape)
    if noise:
        size = float(np.sqrt(np.mean(flux**2)))
        flux = flux + noise * size * np.random.default_rng(seed).normal(size=len(flux))
    return FaceTable(table.inputs, table.columns, np.array(flux))


def make_table(
    *, meshes: int, cells: int, fields: int, samples: int, aspect: float, seed: int, law: str | None, noise: float
) -> FaceTable:
    """Rows drawn from faces of random meshes with random fields, one half polynomials and one half harmonic."""
    formula = None if law is None else read_law(law)
    rng = np.random.default_rng([seed, 1])
    tables = []
    for mesh in data_meshes(meshes, cells, aspect, seed):
        drawn = [random_harmonic(rng) if k % 2 else random_polynomial(rng) for k in range(fields)]
        tables.append(tabulate_faces(dual(mesh), drawn))
    whole = FaceTable(
        *(np.concatenate([getattr(each, name) for each in tables]) for name in ("inputs", "columns", "flux"))
    )
    rows = rng.permutation(len(whole))[:samples]
    return apply_law(whole.select(rows), formula, noise, seed)
