"""What notebooks and prompts show of meshes, schemes, equations and simulations: short, bounded, and escaped."""

import copy
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from matplotlib.figure import Figure

import fluxforge as ff
from fluxforge.errors import ExpressionError, InputError
from fluxforge.mesh import Mesh, jittered, squares
from fluxforge.pde import HEAT, from_document
from fluxforge.pipeline import MetricColumns
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import ErrorNorms, Simulation

MESH = jittered(6, 0.2, 1)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the type checks that tests add to every function, and users do not have."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="module")
def run() -> Simulation:
    return ff.simulate("euler", MESH, initial="sin(pi*x)*sin(pi*y)", steps=4, save_every=2)


def test_a_graph_is_one_line() -> None:
    counted = "4 cells, 4 faces between them, 8 boundary faces"
    assert repr(ff.dual(squares(2))) == f"DualGraph(squares(2): {counted})"


def test_a_mesh_is_one_line_and_a_drawing_of_its_cells() -> None:
    assert repr(squares(2)) == "Mesh(squares(2): 4 quadrilaterals, 9 points; boundary: left, right, bottom, top)"
    text = MESH._repr_html_()
    drawing = ET.fromstring(text[text.index("<svg") :])
    (path,) = drawing
    assert path.attrib["d"].count("Z") == len(MESH.cells)
    # Every corner lies in the box.
    x0, y0, width, height = map(float, drawing.attrib["viewBox"].split())
    corners = np.array(re.findall(r"[ML]([\d.]+) ([\d.]+)", path.attrib["d"]), float)
    assert len(corners) == (MESH.cells >= 0).sum()
    assert (corners >= [x0, y0]).all()
    assert (corners <= [x0 + width, y0 + height]).all()
    # y points up: the lowest row of points, where y = 0, is drawn at the largest ordinate.
    first = MESH.points[MESH.cells[0, 0]]
    np.testing.assert_allclose(corners[0], [300 * first[0], 300 * (1 - first[1])], atol=0.051)


def test_a_large_mesh_shows_counts_only_and_names_are_escaped() -> None:
    large = squares(60)
    assert "3,600 quadrilaterals" in large._repr_html_()
    assert len(large._repr_html_()) < 300
    named = replace(MESH, origin="<script>", boundary={f"<{k}>": np.zeros((0, 2), int) for k in range(50)})
    assert "<script>" not in named._repr_html_()
    assert len(repr(named)) < 300
    assert "\n" not in repr(replace(MESH, origin="a\nb"))


@pytest.mark.parametrize("points", [np.zeros((3, 2)), np.full((3, 2), np.nan)])
def test_a_mesh_without_area_is_shown_without_a_drawing(points: np.ndarray) -> None:
    assert "<svg" not in Mesh(points, np.array([[0, 1, 2]]))._repr_html_()


@pytest.mark.parametrize("scheme", BUILT_IN.values(), ids=str)
def test_a_scheme_is_one_line_and_its_formulas(scheme) -> None:
    assert repr(scheme).startswith(f"Scheme({scheme.name}: heat equation, {len(scheme.stages)} stage")
    assert len(repr(scheme)) < 120
    assert ("implicit" in repr(scheme)) == scheme.implicit
    assert repr(replace(scheme, name="a\nb" * 50)).startswith("Scheme(a ba b")
    assert len(repr(replace(scheme, name="a" * 500))) < 150
    text = scheme._repr_latex_()
    assert text.startswith("$$\n\\begin{aligned}")
    assert text.endswith("\\end{aligned}\n$$")
    assert "%" not in text
    assert text.count("{") == text.count("}")


def test_an_equation_is_one_line_and_its_formula() -> None:
    assert repr(HEAT) == "Equation(heat: unknown T, parameters alpha)"
    assert HEAT._repr_latex_() == (
        r"$$ \frac{\partial T}{\partial t} = \nabla\cdot\left(\alpha\,\nabla T\right) + S $$"
    )
    parameters = {"a": {"rank": "vector"}, "D": {}}
    carried = from_document(
        {"name": "carried", "transported": "u", "velocity": "a", "diffusion": "D", "parameters": parameters}
    )
    assert r"\nabla\cdot\left(\mathbf{a}\,u\right)" in carried._repr_latex_()
    decay = from_document({"name": "decay", "diffusion": "1 + u", "reaction": "-k*u", "parameters": {"k": {}}})
    assert decay._repr_latex_().endswith(r"\nabla\cdot\left(\left(u + 1\right)\,\nabla u\right) - k u + S $$")
    # Names of several letters are no products.
    assert ff.equation("conduction")._repr_latex_().startswith(r"$$ \mathrm{rhoc}\,\frac")
    numbered = from_document({"name": "n", "diffusion": "rate2*rho1", "parameters": {"rate2": {}, "rho1": {}}})
    assert r"\left(\mathrm{rate}_{2} \rho_{1}\,\nabla u\right)" in numbered._repr_latex_()


def test_a_simulation_is_one_line_and_a_picture_of_its_last_field(run: Simulation) -> None:
    shown = r"Simulation\(euler on 72 cells: 4 steps to t = [\d.e-]+, T from [\d.e-]+ to 0\.\d+\)"
    assert re.fullmatch(shown, repr(run))
    assert "data:image/png;base64,iVBOR" in run._repr_html_()
    broken = replace(run, fields=np.full_like(run.fields, np.nan))
    assert "<img" not in broken._repr_html_()


def test_a_simulation_has_its_last_field_a_figure_and_files(run: Simulation, tmp_path: Path) -> None:
    np.testing.assert_array_equal(run.final, run.fields[-1])
    figure = run.plot()
    assert isinstance(figure, Figure)
    # One colour per cell: the values of the last field.
    (patches,) = figure.axes[0].collections
    np.testing.assert_array_equal(patches.get_array(), run.final)
    files = run.save(tmp_path / "out")
    assert {path.name for path in files} >= {"T_0.vtu", "T_2.vtu", "series.pvd", "final.png", "summary.json"}
    assert all(path.is_file() for path in files)
    with pytest.raises(InputError, match="earlier run"):
        run.save(tmp_path / "out")
    assert run.save(tmp_path / "out", overwrite=True) == files


def test_the_error_of_a_run_is_that_of_its_last_field(run: Simulation) -> None:
    assert run.error(run.final) == ErrorNorms(l2=0.0, max=0.0)
    # Σ V = 1 on the unit square: a difference of 2 everywhere has norm 2 to a few roundings.
    apart = run.error(run.final - 2.0)
    assert apart.max == pytest.approx(2.0, rel=1e-14)
    assert apart.l2 == pytest.approx(2.0, rel=1e-14)
    by_formula = run.error("exp(-2*pi**2*t)*sin(pi*x)*sin(pi*y)")
    by_function = run.error(lambda x, y, t: np.exp(-2 * np.pi**2 * t) * np.sin(np.pi * x) * np.sin(np.pi * y))
    assert by_function.l2 == pytest.approx(by_formula.l2, rel=1e-12)
    with pytest.raises(InputError, match=r"^exact: unknown function 'sinn'"):
        run.error("sinn(x)")
    decay = math.exp(-2 * math.pi**2 * run.times[-1])
    by_function = run.error(lambda x, y: decay * np.sin(np.pi * x) * np.sin(np.pi * y))
    # The same products in another order, and errors a hundredth of the field: 1e-16 / 1e-2, some of them.
    assert by_formula.l2 == pytest.approx(by_function.l2, rel=1e-12)
    assert by_formula.max == pytest.approx(by_function.max, rel=1e-12)
    assert 0 < by_formula.l2 <= by_formula.max < run.error(0.0).max
    huge = replace(run, fields=np.full_like(run.fields, 1e300))
    assert huge.error(0.0).l2 == pytest.approx(1e300, rel=1e-14)


def test_results_are_compared_by_identity_and_may_be_keys(run: Simulation) -> None:
    """Compared by value, their arrays have no single truth value."""
    metrics = MetricColumns([{"step": 1}, {"step": 2}])
    certificate = ff.verify("euler", quick=True, families=("squares",))
    results = (MESH, run, run.problem, ff.steady("euler", MESH), certificate, ff.compare(["euler"], MESH), metrics)
    for result in results:
        same = copy.deepcopy(result)
        assert result == result
        assert result != same
        assert len({result, same}) == 2


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("exact", ["q + x", np.ones(3), None, "1/(x - x)"])
def test_a_solution_that_cannot_be_used_is_refused_in_one_line(run: Simulation, exact) -> None:
    with pytest.raises(InputError) as caught:
        run.error(exact)
    assert "\n" not in str(caught.value)
    assert "exact" in str(caught.value) or isinstance(caught.value, ExpressionError)


@pytest.mark.usefixtures("unchecked")
def test_numbers_in_a_mapping_are_dirichlet_values() -> None:
    graph = ff.dual(MESH, {"left": 3.0, "right": np.float32(2), "top": 1})
    same = ff.dual(MESH, {"left": ff.Dirichlet(3.0), "right": ff.Dirichlet(2.0), "top": ff.Dirichlet(1.0)})
    np.testing.assert_array_equal(graph.value, same.value)
    assert not graph.neumann.any()
    with pytest.raises(InputError, match=r"^the boundary condition of 'left' is nan at"):
        ff.dual(MESH, {"left": math.nan})
    wanted = r"^the boundary condition of 'left' should be a number, .* or Inflow\(\.\.\.\), got a list of 1$"
    with pytest.raises(InputError, match=wanted):
        ff.dual(MESH, {"left": [3.0]})  # type: ignore[dict-item]


def test_a_path_is_taken_wherever_a_mesh_is(tmp_path: Path) -> None:
    ff.mesh.write(MESH, path := tmp_path / "m.msh")
    read = ff.mesh.read(path)
    for given in (path, str(path)):
        np.testing.assert_array_equal(ff.dual(given, {"left": 1.0}).value, ff.dual(read, {"left": 1.0}).value)
        assert ff.mesh.info(given).cells == len(MESH.cells)
        for measure in (ff.mesh.cell_quality, ff.mesh.cell_diameters):
            np.testing.assert_array_equal(measure(given), measure(read))
        ff.mesh.write(given, tmp_path / "again.vtu")
        assert len(ff.mesh.read(tmp_path / "again.vtu").cells) == len(MESH.cells)
    T = np.linspace(0.0, 1.0, len(MESH.cells))
    by_path, by_graph = (np.asarray(ff.stepper("euler", it, 1e-3)(T)) for it in (path, ff.dual(read)))
    np.testing.assert_array_equal(by_path, by_graph)
    assert len(ff.compare(["euler", "midpoint"], path, steps=1).simulations) == 2
    with pytest.raises(InputError, match=r"missing\.msh"):
        ff.stepper("euler", tmp_path / "missing.msh", 1e-3)
