"""The result of the higher-order study: constants of least residual, networks and their discoveries."""

from msgspec import Struct
from msgspec import field as named

from fluxforge.paper.studies._records import ConstantsRow, Residuals
from fluxforge.paper.studies._seeds import Tally
from fluxforge.run.result import Discovery


class Certified(Struct, frozen=True):
    """Orders in time without and with a source, and the longest stable step in Fourier steps."""

    order: float | None = None
    order_with_source: float | None = None
    stable: float | None = None


class Direct(Struct, frozen=True):
    """The constants of least residual, found without a network: at each Δt, and in the limit of small steps."""

    rows: list[ConstantsRow]
    limit: dict[str, float]
    uncertainty: dict[str, float]
    rational: dict[str, str]
    certified: Certified


class NetworkStep(Struct, frozen=True):
    """Residuals at one time step, in Fourier steps, and the network's own constants with the share left unexplained."""

    fourier: float
    network: float
    euler: float
    midpoint: float
    rk4: float
    crank_nicolson: float = named(name="crank-nicolson")
    constants: dict[str, float]


class NetworkRow(Struct, frozen=True):
    """A trained network: its training, its residual over all steps of the training, and at single steps."""

    steps: int
    width: int
    loss: str
    theta: float | None
    fourier: list[float]
    skipped: int
    residual: Residuals
    by_step: list[NetworkStep]


class Result(Struct, frozen=True):
    """The result of the study; `direct` by θ with two layers, `direct_four` by residual with four."""

    experiment: str
    preset: str
    direct: dict[str, Direct]
    direct_four: dict[str, Direct]
    printed_diffusivity: dict[str, list[list[float]]]
    networks: dict[str, NetworkRow]
    discovered: dict[str, Discovery]
    rates: dict[str, Tally] | None
