"""A recipe: everything that decides what a run discovers."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from fluxforge.recipe._data import Data, Pairs
from fluxforge.recipe._evaluation import Evaluation
from fluxforge.recipe._loss import Loss
from fluxforge.recipe._network import Network
from fluxforge.recipe._numbers import Positive, Seed, Signed, Weight
from fluxforge.recipe._search import Search
from fluxforge.recipe._training import Training


class Recipe(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Data, network, loss and training, and what is asked of the result.

    - `seed`: of the data and of the first network; `seeds` networks are trained side by side;
    - `equation`: a built-in one by name, a TOML file relative to the recipe's own folder, or the fields of such a file
      as a table; a file is read into the recipe, so that a run does not need it any more;
    - `parameters`: values of the equation's parameters that data are made with, in units where the mean cell volume is
      1; those left out take their defaults;
    - `diffusivity`: the word for the parameter of heat;
    - `arms`: named values of the sparsity weight; every seed is trained once per arm (none: the weight in `loss`);
    - `search`: how networks are turned into formulas (none: they are not);
    - `expect`: the verdict that a run should end with; `order`: the order in time that its formula should have.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    summary: str = ""
    seed: Seed = 0
    seeds: Annotated[int, Meta(ge=1, le=1024)] = 1
    equation: str | dict[str, Any] = "heat"
    parameters: dict[str, Signed | tuple[Any, ...]] = {}
    diffusivity: Positive | None = None
    expect: Literal["recovered", "approximation"] = "recovered"
    order: Annotated[int, Meta(ge=1, le=8)] | None = None
    arms: dict[str, Weight] = {}
    data: Data = Pairs()
    network: Network = Network()
    loss: Loss = Loss()
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    search: Search | None = None
