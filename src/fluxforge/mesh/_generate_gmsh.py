"""Unstructured meshes by gmsh, which is imported only where it is used: its wheel needs libraries of the system."""

import ctypes
import importlib
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import numpy as np
from jaxtyping import Int

from fluxforge._types import Points
from fluxforge.errors import InputError, MeshError
from fluxforge.mesh._domain import AbstractDomain, Disk, Polygon, Sizing, sizing
from fluxforge.mesh._mesh import Mesh

# Which Debian package holds each library that the gmsh wheel loads from the system.
DEBIAN_PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        "libGLU.so.1": "libglu1-mesa",
        "libGL.so.1": "libgl1",
        "libEGL.so.1": "libegl1",
        "libGLX.so.0": "libglx0",
        "libOpenGL.so.0": "libopengl0",
        "libX11.so.6": "libx11-6",
        "libXcursor.so.1": "libxcursor1",
        "libXext.so.6": "libxext6",
        "libXfixes.so.3": "libxfixes3",
        "libXft.so.2": "libxft2",
        "libXi.so.6": "libxi6",
        "libXinerama.so.1": "libxinerama1",
        "libXrandr.so.2": "libxrandr2",
        "libXrender.so.1": "libxrender1",
        "libSM.so.6": "libsm6",
        "libICE.so.6": "libice6",
        "libfontconfig.so.1": "libfontconfig1",
        "libfreetype.so.6": "libfreetype6",
        "libgomp.so.1": "libgomp1",
        "libstdc++.so.6": "libstdc++6",
        "libz.so.1": "zlib1g",
    }
)

# gmsh's numbers for its mesh algorithm and its type of element.
FRONTAL_DELAUNAY = 6
TRIANGLE = 2
# The relative amplitude of the size of regular meshes; see `mesh_with_gmsh`.
WAVE = 0.08
# The options a mesh depends on, so that neither a user's settings nor an earlier mesh changes the result.
OPTIONS: Mapping[str, float] = MappingProxyType(
    {
        "General.AbortOnError": 2,
        "General.NumThreads": 1,
        "General.Terminal": 0,
        "Geometry.Tolerance": 1e-8,
        "Mesh.Algorithm": FRONTAL_DELAUNAY,
        "Mesh.ElementOrder": 1,
        "Mesh.MaxNumThreads1D": 1,
        "Mesh.MaxNumThreads2D": 1,
        "Mesh.MeshSizeExtendFromBoundary": 0,
        "Mesh.MeshSizeFactor": 1,
        "Mesh.MeshSizeFromCurvature": 0,
        "Mesh.MeshSizeFromPoints": 0,
        "Mesh.MeshSizeMax": 1e22,
        "Mesh.MeshSizeMin": 0,
        "Mesh.Optimize": 1,
        "Mesh.RandomFactor": 1e-9,
        "Mesh.RandomSeed": 1,
        "Mesh.RecombineAll": 0,
        "Mesh.Renumber": 1,
        "Mesh.Smoothing": 1,
        "Mesh.SubdivisionAlgorithm": 0,
    }
)

# gmsh has one state per process, which threads must not share.
_one_at_a_time = Lock()


def gmsh_problem() -> str | None:
    """Why gmsh cannot be used, in one line that says what to install; None if it can."""
    try:
        importlib.import_module("gmsh")
    except ImportError:
        return "gmsh is not installed: install the Python package gmsh"
    except OSError as error:
        return _explain_import_error(str(error))
    return None


def _explain_import_error(message: str) -> str:
    match = re.search(r"lib[\w+.-]+?\.so(?:\.\d+)*", message)
    if match is None:
        return f"gmsh cannot be loaded ({' '.join(message.split())}): reinstall the Python package gmsh"
    library = match.group()
    package = DEBIAN_PACKAGES.get(library)
    if package is None:
        return f"gmsh needs the system library {library}: install the package of your system that has it"
    return f"gmsh needs the system library {library}: install the package {package} (its name on Debian and Ubuntu)"


def mesh_with_gmsh(
    domain: AbstractDomain, *, size: float, attractors: Points, seed: int, near: float | None = None
) -> Mesh:
    """Triangles of a domain by gmsh's frontal Delaunay algorithm, with the edge lengths of `sizing`.

    gmsh's own random seed does not change its plane meshes. Without attraction points the seed therefore chooses the
    direction, length and phase of a plane wave by which the size undulates by ±8 per cent; with seed 0 it is uniform.

    Raises InputError if gmsh cannot be used, MeshError if it fails.
    """
    if (problem := gmsh_problem()) is not None:
        raise InputError(f"field 'engine': {problem}, or use engine 'builtin'")
    with _one_at_a_time, _model() as gmsh:
        try:
            curves = _draw(gmsh, domain)
            if len(attractors):
                _set_size(gmsh, sizing(domain, size, attractors, near))
            else:
                _set_wave(gmsh, domain, size, seed)
            gmsh.model.mesh.generate(2)
            return _collect(gmsh, curves)
        # gmsh raises bare Exceptions.
        except Exception as error:
            raise MeshError(
                f"gmsh could not mesh the domain ({error}): try another size, or engine 'builtin'"
            ) from error


@contextmanager
def _model() -> Iterator[Any]:
    """A new model in gmsh with OPTIONS; a session that the caller has open in gmsh is restored afterwards."""
    gmsh = importlib.import_module("gmsh")
    if gmsh.isInitialized():
        with _borrow_gmsh(gmsh):
            yield gmsh
        return
    with keep_sigpipe_ignored():
        gmsh.initialize(readConfigFiles=False, interruptible=False)
    try:
        _configure(gmsh, OPTIONS)
        yield gmsh
    finally:
        gmsh.finalize()


@contextmanager
def _borrow_gmsh(gmsh: Any) -> Iterator[None]:
    current, before = gmsh.model.getCurrent(), {name: gmsh.option.getNumber(name) for name in OPTIONS}
    _configure(gmsh, OPTIONS)
    gmsh.model.add(f"fluxforge {uuid4()}")
    try:
        yield
    finally:
        gmsh.model.remove()
        _configure(gmsh, before)
        gmsh.model.setCurrent(current)


def _configure(gmsh: Any, options: Mapping[str, float]) -> None:
    for name, value in options.items():
        gmsh.option.setNumber(name, value)


def _draw(gmsh: Any, domain: AbstractDomain) -> list[tuple[str, int]]:
    """Draw the outline and the surface inside it; return the tag and the number of each curve."""
    geo = gmsh.model.geo
    match domain:
        case Polygon():
            corners = [geo.addPoint(x, y, 0.0) for x, y in domain.vertices]
            ends = zip(corners, corners[1:] + corners[:1], strict=True)
            curves = [(tag, geo.addLine(a, b)) for (tag, _), (a, b) in zip(domain.sides, ends, strict=True)]
        case Disk():
            centre = geo.addPoint(*domain.centre, 0.0)
            corners = [geo.addPoint(x, y, 0.0) for x, y in domain.along(0, np.arange(4) / 4).tolist()]
            ends = zip(corners, corners[1:] + corners[:1], strict=True)
            curves = [(domain.sides[0][0], geo.addCircleArc(a, centre, b)) for a, b in ends]
        case _:
            raise InputError(f"field 'domain': gmsh cannot draw a {type(domain).__name__}")
    geo.addPlaneSurface([geo.addCurveLoop([curve for _, curve in curves])])
    geo.synchronize()
    return curves


def _set_size(gmsh: Any, h: Sizing) -> None:
    """Set the edge lengths in gmsh as fields: a threshold of the distance to the attraction points."""
    field = gmsh.model.mesh.field
    nearest = field.add("Distance")
    field.setNumbers(nearest, "PointsList", [gmsh.model.geo.addPoint(x, y, 0.0) for x, y in h.attractors.tolist()])
    gmsh.model.geo.synchronize()
    graded = field.add("Threshold")
    field.setNumber(graded, "InField", nearest)
    for name, value in (("SizeMin", h.near * h.size), ("SizeMax", h.size), ("DistMin", h.core), ("DistMax", h.reach)):
        field.setNumber(graded, name, value)
    field.setAsBackgroundMesh(graded)


def _set_wave(gmsh: Any, domain: AbstractDomain, size: float, seed: int) -> None:
    """Set the size (1 + WAVE sin(k·x + φ)) in gmsh, with k and φ from the seed, |k| between 1 and 2 waves per √area."""
    rng = np.random.default_rng(seed)
    turn, phase = 2.0 * np.pi * rng.random(2)
    k = 2.0 * np.pi * rng.uniform(1.0, 2.0) / domain.area**0.5
    height = WAVE if seed else 0.0
    angle = f"({k * np.cos(turn):.17f})*x+({k * np.sin(turn):.17f})*y+{phase:.17f}"
    wave = gmsh.model.mesh.field.add("MathEval")
    gmsh.model.mesh.field.setString(wave, "F", f"{size:.17f}*(1+{height}*Sin({angle}))")
    gmsh.model.mesh.field.setAsBackgroundMesh(wave)


def _collect(gmsh: Any, curves: Sequence[tuple[str, int]]) -> Mesh:
    """The mesh that gmsh made: the triangles, their points renumbered from 0, and the edges of each tag."""
    numbers, coordinates, _ = gmsh.model.mesh.getNodes()
    triangles = np.asarray(gmsh.model.mesh.getElementsByType(TRIANGLE)[1], dtype=np.int64).reshape(-1, 3)
    used = np.unique(triangles)
    order = np.argsort(numbers)
    points = coordinates.reshape(-1, 3)[order[np.searchsorted(numbers[order], used)], :2]
    boundary: dict[str, list[Int[np.ndarray, "edges 2"]]] = {}
    for tag, curve in curves:
        edges = np.asarray(gmsh.model.mesh.getElements(1, curve)[2][0], dtype=np.int64).reshape(-1, 2)
        boundary.setdefault(tag, []).append(np.searchsorted(used, edges))
    return Mesh(points, np.searchsorted(used, triangles), {t: np.concatenate(e) for t, e in boundary.items()})


# SIG_IGN as a C function pointer.
IGNORE_SIGNAL = 1


@contextmanager
def keep_sigpipe_ignored() -> Iterator[None]:
    """Keep SIGPIPE ignored if it is: gmsh resets it, after which a write to a closed pipe would end the process.

    Python ignores it, so that such a write raises BrokenPipeError. `signal.signal` works in the main thread only, the C
    function behind it in any thread.
    """
    ignored = hasattr(signal, "SIGPIPE") and signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    try:
        yield
    finally:
        if ignored:
            _set_handler(signal.SIGPIPE, IGNORE_SIGNAL)


def _set_handler(number: int, handler: int) -> None:
    below = ctypes.pythonapi.PyOS_setsig
    below.argtypes, below.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    below(number, handler)
