"""Networks that an earlier part of the same reproduction has trained."""

from pathlib import Path

from fluxforge.data import source
from fluxforge.discover import recipe_of
from fluxforge.gnn import Network
from fluxforge.run import RunFolder
from fluxforge.train import train

# Where `higher-order` keeps its two networks, beside the other parts of a reproduction.
PART = "higher-order"
NAMES = ("midpoint", "two-hop")


def trained_before(folder: Path | None) -> dict[str, Network]:
    """The networks of `higher-order` that are trained to their end, by the name of their recipe.

    `folder` is another part's own, beside it.
    """
    if folder is None:
        return {}
    runs = {name: folder.parent / PART / name for name in NAMES}
    return {f"network-{name}": _network(run) for name, run in runs.items() if _is_done(run)}


def _is_done(run: Path) -> bool:
    return (run / "stages" / "discovery.json").exists()


def _network(run: Path) -> Network:
    with RunFolder.open(run, warn=lambda _: None) as folder:
        spec = recipe_of(folder)
        return train(spec, source(spec), folder=folder).member(0)
