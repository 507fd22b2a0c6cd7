"""`fluxforge discover`: not discovery yet, and it says so."""

import typer

TEXT = """\
Discovery (training, distilling and certifying a scheme) arrives in a later version; nothing was discovered here.
What works today:
  fluxforge mesh       generate meshes, inspect mesh files
  fluxforge schemes    the built-in schemes, their formulas and claims
  fluxforge simulate   heat problems on a mesh, with one scheme or several
  fluxforge verify     the certificate of a scheme: orders, stability, conservation, claims
  fluxforge export     a scheme as LaTeX, NumPy, JAX or C
  fluxforge doctor     what works on this machine

A demonstration: an irregular mesh of about 300 cells, T(0) = sin(πx) sin(πy), T = 0 on the boundary,
50 steps of half the Fourier step.\
"""


def discover() -> None:
    """NOT DISCOVERY YET: say what exists today and run a small demonstration of it.

    Training, distilling and certifying schemes arrive in a later version.
    """
    typer.echo(f"{TEXT}\n")
    from fluxforge.cli._progress import doing

    with doing("meshing"):
        from fluxforge.cli._heat import Problem, Request, run
        from fluxforge.mesh import square

        mesh = square(cells=300, kind="irregular", engine="builtin")
    problem = Problem(mesh, initial="sin(pi*x)*sin(pi*y)", source="0", boundary=None)
    request = Request(schemes=("euler", "midpoint"), folder=None, gif=False, as_json=False)
    run(request, problem, steps=50, dt_fraction=0.5)
