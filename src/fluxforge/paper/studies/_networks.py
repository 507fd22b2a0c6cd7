"""Networks that an earlier part of the same reproduction has trained."""

from pathlib import Path

from fluxforge import recipe
from fluxforge.data import source
from fluxforge.gnn import Network
from fluxforge.pipeline import recipe_of
from fluxforge.run import RunFolder
from fluxforge.train import train

# Where `higher-order` keeps its two networks, beside the other parts of a reproduction.
PART = "higher-order"
NAMES = ("midpoint", "two-hop")
# Where `rates` keeps its runs, RECIPE-SEED.
RATES = "rates"


def trained_before(folder: Path | None) -> dict[str, Network]:
    """The networks of `higher-order` that are trained to their end, by the name of their recipe.

    `folder` is another part's own, beside it.
    """
    if folder is None:
        return {}
    own = folder.parent / PART
    runs = {name: own / name for name in NAMES}
    if (own / f"{PART}.json").exists():
        # It has taken over a network that `rates` had trained.
        runs |= {name: of_rates(own, name, 0) for name, run in runs.items() if not run.exists()}
    return {f"network-{name}": _network(run) for name, run in runs.items() if _is_done(run)}


def of_rates(folder: Path, name: str, seed: int) -> Path:
    """The run folder of a recipe and a seed in `rates`, beside another part's folder."""
    return folder.parent / RATES / f"{name}-{seed}"


def run_of(spec: recipe.Recipe, folder: Path) -> Path:
    """Where a part runs this recipe: in its folder, unless `rates` beside it has finished the very same run."""
    own, other = folder / spec.name, of_rates(folder, spec.name, spec.seed)
    if (own / "run.json").exists() or not _is_done(other):
        return own
    with RunFolder.open(other, warn=lambda _: None) as held:
        same = recipe.fingerprint(recipe_of(held)) == recipe.fingerprint(spec)
    return other if same else own


def _is_done(run: Path) -> bool:
    return (run / "stages" / "discovery.json").exists()


def _network(run: Path) -> Network:
    with RunFolder.open(run, warn=lambda _: None) as folder:
        spec = recipe_of(folder)
        return train(spec, source(spec), folder=folder).member(0)
