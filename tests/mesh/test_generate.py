"""Generated meshes, by gmsh and by the built-in engine: sound, as many cells as asked for, reproducible."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_families import assert_sound, edge_lengths

from fluxforge.errors import InputError
from fluxforge.mesh import (
    FAMILIES,
    Disk,
    Mesh,
    Polygon,
    cell_quality,
    dual,
    generate,
    gmsh_problem,
    graded,
    unit_square,
)
from fluxforge.mesh._domain import sizing
from fluxforge.mesh._generate_delaunay import triangulate
from strategies import few, seeds

PROBLEM = gmsh_problem()
needs_gmsh = pytest.mark.skipif(PROBLEM is not None, reason=str(PROBLEM))
ENGINES = ["builtin", pytest.param("gmsh", marks=needs_gmsh)]
KINDS = ["regular", "irregular"]

L_SHAPE = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
TURNED = Polygon([(5.0, -3.0), (5.9, -2.6), (5.5, -1.7), (4.6, -2.1)], ("wall", "outlet", "wall", "inlet"))
STAR = Polygon(
    [(r * np.cos(k * np.pi / 5), r * np.sin(k * np.pi / 5)) for k in range(10) for r in [0.4 + 0.6 * (k % 2)]]
)
SLIT = Polygon([(0, 0), (1, 0), (1, 1), (0.51, 1), (0.5, 0.2), (0.49, 1), (0, 1)])
POLYGONS = {"square": unit_square(), "L": L_SHAPE, "turned": TURNED, "star": STAR, "slit": SLIT}


def same(a: Mesh, b: Mesh) -> bool:
    return a.points.tobytes() == b.points.tobytes() and a.cells.tobytes() == b.cells.tobytes()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", POLYGONS)
def test_meshes_of_polygons_are_sound_and_well_shaped(name: str, kind: str, engine: str) -> None:
    domain = POLYGONS[name]
    mesh = generate(domain, kind=kind, cells=250, seed=2, engine=engine)
    assert_sound(mesh, domain.area)
    assert abs(len(mesh.cells) - 250) <= 0.05 * 250
    assert cell_quality(mesh).min() > 0.5
    assert cell_quality(mesh).mean() > 0.9
    assert set(mesh.boundary) == set(domain.tags or ())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_is_meshed_as_the_polygon_of_its_boundary_points(kind: str, engine: str) -> None:
    disk = Disk((3.0, -4.0), 0.2)
    mesh = generate(disk, kind=kind, cells=300, seed=1, engine=engine)
    rim = np.unique(mesh.boundary["circle"])
    x, y = (mesh.points[rim] - disk.centre).T
    assert np.abs(np.hypot(x, y) - 0.2).max() < 1e-14
    turns = np.diff(np.sort(np.arctan2(y, x)), append=np.arctan2(y, x).min() + 2.0 * np.pi)
    assert_sound(mesh, 0.5 * 0.2**2 * float(np.sin(turns).sum()))
    assert cell_quality(mesh).min() > 0.5
    assert any("inscribed" in note for note in mesh.notes)


@pytest.mark.parametrize("engine", ENGINES)
def test_sides_of_generated_meshes_lie_where_their_tags_say(engine: str) -> None:
    mesh = generate(kind="irregular", seed=3, engine=engine)
    for tag, axis, value in (("left", 0, 0.0), ("right", 0, 1.0), ("bottom", 1, 0.0), ("top", 1, 1.0)):
        assert np.abs(mesh.points[mesh.boundary[tag], axis] - value).max() < 1e-15
    walls = generate(TURNED, engine=engine).boundary
    assert list(walls) == ["wall", "outlet", "inlet"]
    assert len(walls["wall"]) >= 2 * len(walls["inlet"]) - 4


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_count_of_cells_is_close_to_the_wanted_one(kind: str, engine: str) -> None:
    # Seed 0 of gmsh is exactly uniform, and jumps from 90 to 110 cells: all sides get one more edge at once.
    for seed, cells in enumerate([100, 137, 251, 420, 600], start=1):
        count = len(generate(kind=kind, cells=cells, seed=seed, engine=engine).cells)
        assert abs(count - cells) <= 0.05 * cells, (seed, cells, count)


@pytest.mark.parametrize("kind", KINDS)
def test_large_counts_are_met_by_way_of_a_pilot(kind: str) -> None:
    mesh = generate(kind=kind, cells=18_000, engine="builtin")
    assert abs(len(mesh.cells) - 18_000) <= 0.05 * 18_000
    assert cell_quality(mesh).min() > 0.5


@pytest.mark.parametrize("engine", ENGINES)
def test_a_count_that_cannot_be_met_is_noted(engine: str) -> None:
    mesh = generate(cells=3, engine=engine)
    assert_sound(mesh, 1.0)
    assert len(mesh.cells) != 3
    assert f"3 cells were wanted, the closest mesh found has {len(mesh.cells)}" in mesh.notes


@pytest.mark.parametrize("engine", ENGINES)
def test_edges_have_the_wanted_size(engine: str) -> None:
    mesh = generate(size=0.06, engine=engine)
    lengths = edge_lengths(mesh)
    assert abs(np.median(lengths) / 0.06 - 1.0) < 0.1
    assert lengths.min() > 0.5 * 0.06
    assert lengths.max() < 1.6 * 0.06


@pytest.mark.parametrize("engine", ENGINES)
def test_irregular_meshes_are_four_times_finer_at_their_attraction_points(engine: str) -> None:
    mesh = generate(kind="irregular", cells=2000, seed=11, engine=engine)
    edge = np.sqrt(dual(mesh).V * 4.0 / np.sqrt(3.0))
    near, far = np.quantile(edge, [0.02, 0.98])
    assert 3.0 < far / near < 6.0
    regular = generate(cells=2000, seed=11, engine=engine)
    areas = dual(regular).V
    assert areas.max() < 4.0 * areas.min()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_mesh_and_another_seed_another(kind: str, engine: str) -> None:
    first = [generate(kind=kind, cells=200, seed=seed, engine=engine) for seed in range(4)]
    again = [generate(kind=kind, cells=200, seed=seed, engine=engine) for seed in reversed(range(4))][::-1]
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    assert len({mesh.points.tobytes() for mesh in first}) == 4


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("exponent", [-30, 40])
def test_a_domain_scaled_by_a_power_of_two_gives_the_same_mesh_scaled(exponent: int, engine: str) -> None:
    plain = generate(L_SHAPE, kind="irregular", cells=150, seed=6, engine=engine)
    scaled = generate(L_SHAPE.scale_by(2.0**exponent), kind="irregular", cells=150, seed=6, engine=engine)
    assert np.array_equal(scaled.points, plain.points * 2.0**exponent)
    assert np.array_equal(scaled.cells, plain.cells)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_domain_far_from_the_origin_is_meshed(engine: str) -> None:
    far = Polygon([(x + 1e6, y - 2e6) for x, y in unit_square().vertices])
    mesh = generate(far, kind="irregular", cells=150, engine=engine)
    V = dual(mesh).V
    assert V.min() > 0
    assert abs(V.sum() - 1.0) < 1e-8
    assert cell_quality(mesh).min() > 0.5


@few(6)
@given(seed=seeds, spikes=st.integers(3, 9), depth=st.floats(0.2, 0.95), turn=st.floats(0.0, 1.0))
def test_the_builtin_engine_follows_every_star(seed: int, spikes: int, depth: float, turn: float) -> None:
    angle = turn + np.pi * np.arange(2 * spikes) / spikes
    radius = np.where(np.arange(2 * spikes) % 2, depth, 1.0)
    star = Polygon(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).tolist())
    kind = KINDS[seed % 2]
    mesh = generate(star, kind=kind, cells=120, seed=seed, engine="builtin")
    assert_sound(mesh, star.area)


@pytest.mark.parametrize("engine", ENGINES)
def test_close_walls_sharp_corners_and_thin_channels_are_kept(engine: str) -> None:
    gap = Polygon([(0, 0), (1, 0), (1, 0.499), (0.2, 0.499), (0.2, 0.501), (1, 0.501), (1, 1), (0, 1)])
    needle = Polygon([(0, 0), (1, -0.02), (1, 0.02)])
    channel = Polygon([(0, 0), (0.8, 0.6), (0.794, 0.608), (-0.006, 0.008)])
    for domain in (gap, needle, channel):
        assert_sound(generate(domain, kind="irregular", cells=400, seed=3, engine=engine), domain.area)


def test_no_flat_triangle_joins_points_that_lie_on_one_side() -> None:
    """A point that round-off pulls off its side leaves a sliver behind it, which is no cell."""
    points = np.array([[0, 0], [0.5, 1e-15], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
    cells = triangulate(unit_square(), points)
    assert {frozenset(c) for c in cells.tolist()} == {
        frozenset(c) for c in [(0, 1, 5), (1, 2, 5), (2, 3, 5), (3, 4, 5), (4, 0, 5)]
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_sizes_larger_than_the_domain_give_its_coarsest_mesh(engine: str) -> None:
    mesh = generate(size=1e300, engine=engine)
    assert_sound(mesh, 1.0)
    assert 2 <= len(mesh.cells) <= 4


def test_attraction_points_shrink_the_size_to_a_quarter() -> None:
    h = sizing(Polygon([(0, 0), (2, 0), (2, 2), (0, 2)]), 0.4, np.array([[0.5, 0.5], [1.5, 1.5]]))
    at = h(np.array([[0.5, 0.5], [0.5, 0.59], [1.5, 1.5 + 0.45], [1.5, 0.5]]))
    assert np.allclose(at, [0.1, 0.1, 0.25, 0.4])


def test_origin_and_default_count() -> None:
    assert generate(kind="irregular", seed=3, engine="builtin").origin == "irregular mesh, 300 cells, seed 3"
    assert generate(size=0.25, engine="builtin").origin == "regular mesh, size 0.25, seed 0"


@pytest.mark.parametrize("name", KINDS)
def test_generated_meshes_are_families_too(name: str) -> None:
    mesh = FAMILIES[name](9, 2)
    assert_sound(mesh, 1.0)
    assert abs(len(mesh.cells) - 162) <= 0.05 * 162


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"cells": 1}, "cells"),
        ({"cells": -4}, "cells"),
        ({"cells": 10**7 + 1}, "cells"),
        ({"size": 0.0}, "size"),
        ({"size": -1.0}, "size"),
        ({"size": float("nan")}, "size"),
        ({"size": float("inf")}, "size"),
        ({"size": 1e-5}, "size"),
        ({"size": 1e-320}, "size"),
        ({"kind": "curly"}, "kind"),
        ({"engine": "triangle"}, "engine"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, object], field: str) -> None:
    with pytest.raises(InputError, match=f"field '{field}'"):
        generate(**arguments)  # type: ignore[arg-type]


def test_cells_and_size_together_are_refused() -> None:
    with pytest.raises(InputError, match="fields 'cells' and 'size'"):
        generate(cells=100, size=0.1)


@pytest.mark.parametrize("engine", ["builtin", "auto"])
def test_a_graded_mesh_grows_from_a_point(engine: str) -> None:
    mesh = graded(cells=400, ratio=100.0, engine=engine)
    sizes = np.sqrt(dual(mesh).V)
    assert abs(len(mesh.cells) - 400) <= 0.1 * 400
    # Edges reach the ratio at the distance 1, and cells end at walls closer than that.
    assert 25 < sizes.max() / sizes.min() < 200


def test_a_ratio_of_one_is_refused() -> None:
    with pytest.raises(InputError, match="field 'ratio'"):
        graded(ratio=1.0)
