"""Whether a formula is believed: by the pipeline's own thresholds, and by nothing it might be expected to be."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluxforge.verify import Certificate

# A formula that explains its network has at most this many times the network's loss.
EXPLAINS = 1.5
ROUND_OFF = 1e-9
# A network whose step is a series in ΔtL may differ from it by this part of T' − T, root mean square.
UNEXPLAINED = 0.1
# A consistent scheme diffuses with α to within this.
DIFFUSES = 0.05


def judge(document: Mapping[str, Any], certificate: Certificate, *, order: int = 1) -> tuple[bool, list[str]]:
    """Every condition with its number; all of them have to hold. `order` in time is what the loss asks for."""
    checks = [_explains(document), *_repeats(document), _agrees(document), *_certified(certificate, order)]
    return all(holds for holds, _ in checks), [f"{'yes' if holds else 'NO'}: {text}" for holds, text in checks]


def _explains(document: Mapping[str, Any]) -> tuple[bool, str]:
    loss = document["loss"]
    text = f"refitted, the formula's loss is {loss['formula']:.2e}, the network's own {loss['network']:.2e}"
    if "against_step" in document:
        text += ", each at its shortest steps"
    return loss["formula"] <= EXPLAINS * loss["network"] + ROUND_OFF, text


def _repeats(document: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """Of a network that was read through its stencil: how much of what it does is the flux, repeated."""
    if "laws" not in document:
        return []
    parts = [row["network"]["unexplained"] for row in document["against_step"] if "network" in row]
    text = f"the flux repeated {document['order']} times explains all but {max(parts):.1%} of what the network does"
    return [(max(parts) <= UNEXPLAINED, text)]


def _agrees(document: Mapping[str, Any]) -> tuple[bool, str]:
    found = document["stencil"]
    law = found["network"]
    powers = " ".join(f"{name}^{value:.2f}" for name, value in law["exponents"].items())
    text = (
        f"the network's stencil, {law['factor']:.3f} {powers}, differs from the formula's by {found['difference']:.1%}"
    )
    return bool(found["agree"]), text


def _certified(certificate: Certificate, wanted: int) -> list[tuple[bool, str]]:
    kept = certificate.conservation is not None and certificate.conservation.holds
    order = None if certificate.time is None else certificate.time.order
    K = _diffusivity(certificate)
    off = None if K is None else float(np.abs(K - np.eye(2)).max())
    return [
        (kept, "the scheme conserves heat" if kept else "the scheme does not conserve heat"),
        (
            order is not None and order >= wanted - 0.1,
            f"its order in time is {'not established' if order is None else f'{order:.2f}'}, {wanted} asked for",
        ),
        (
            off is not None and off <= DIFFUSES,
            "its diffusivity on squares "
            + ("could not be established" if off is None else f"differs from α by {off:.1%}"),
        ),
    ]


def _diffusivity(certificate: Certificate) -> np.ndarray | None:
    found = certificate.space.get("squares")
    return None if found is None or found.diffusivity is None else np.asarray(found.diffusivity)
