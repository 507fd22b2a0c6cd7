"""Domains: refused arguments, orientation, and geometry."""

import numpy as np
import pytest

from fluxforge.errors import InputError
from fluxforge.mesh import AbstractDomain, Disk, Polygon, unit_square

L_SHAPE = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])


@pytest.mark.parametrize(
    "vertices",
    [
        [(0, 0), (1, 0)],
        [(0, 0), (1, 0), (1, float("nan"))],
        [(0, 0), (1, 0), (1, float("inf"))],
        [(0, 0), (1, 0, 3), (1, 1)],
        [(0, 0), (1, 0), (1, 1), (0, 0)],
        [(0, 0), (1, 0), (1, 0), (0, 1)],
        [(0, 0), (1, 1), (1, 0), (0, 1)],
        [(0, 0), (3, 1), (3, 0), (0, 2)],
        [(0, 0), (1, 0), (2, 0)],
        [(0, 0), (2, 0), (1, 0), (0, 1)],
        [(0, 0), (2, 0), (2, 2), (1, 0), (0, 2)],
        [(0, 0), (1, 0), (1, 1e-9), (0, 1e-9)],
        [(1e9, 1e9), (1e9 + 1, 1e9), (1e9, 1e9 + 1)],
        [(0, 0), (1e-200, 0), (0, 1e-200)],
        [(0, 0), (1e200, 0), (0, 1e200)],
    ],
)
def test_vertices_that_are_no_simple_polygon_are_refused(vertices: list[tuple[float, ...]]) -> None:
    with pytest.raises(InputError, match="field 'vertices'"):
        Polygon(vertices)


def test_tags_must_match_the_sides() -> None:
    with pytest.raises(InputError, match="field 'tags'"):
        Polygon([(0, 0), (1, 0), (0, 1)], ("a", "b"))


@pytest.mark.parametrize(
    ("centre", "radius", "field"),
    [
        ((0.0, 0.0), 0.0, "radius"),
        ((0.0, 0.0), float("nan"), "radius"),
        ((0.0, float("nan")), 1.0, "centre"),
        ((1e9, 0.0), 1.0, "radius"),
    ],
)
def test_invalid_disks_are_refused_by_field(centre: tuple[float, float], radius: float, field: str) -> None:
    with pytest.raises(InputError, match=f"field '{field}'"):
        Disk(centre, radius)


def test_clockwise_polygons_are_turned_and_tags_stay_with_their_sides() -> None:
    vertices = [(0, 0), (0, 1), (1, 1), (1, 0)]
    square = Polygon(vertices, ("left", "top", "right", "bottom"))
    assert square.area == 1.0
    where = {tag: square.along(k, np.array([0.5]))[0].tolist() for k, (tag, _) in enumerate(square.sides)}
    assert where == {"left": [0.0, 0.5], "top": [0.5, 1.0], "right": [1.0, 0.5], "bottom": [0.5, 0.0]}
    unnamed = Polygon(vertices)
    assert {tag: unnamed.along(k, np.array([0.5]))[0].tolist() for k, (tag, _) in enumerate(unnamed.sides)} == {
        "side-0": [0.0, 0.5],
        "side-1": [0.5, 1.0],
        "side-2": [1.0, 0.5],
        "side-3": [0.5, 0.0],
    }


def test_domains_know_their_area_and_what_they_contain() -> None:
    assert L_SHAPE.area == 3.0
    assert Disk(radius=2.0).area == 4.0 * np.pi
    points = np.array([[0.5, 0.5], [1.5, 1.5], [0.5, 1.5], [-0.1, 0.5]])
    assert L_SHAPE.contains(points).tolist() == [True, False, True, False]
    assert Disk((0.0, 1.0), 0.8).contains(points).tolist() == [True, False, True, True]
    assert hash(unit_square()) == hash(unit_square())
    assert isinstance(L_SHAPE, AbstractDomain)
