"""Whether a formula is believed: by the pipeline's own thresholds, and by nothing it might be expected to be."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluxforge.verify import Certificate

# A formula that explains its network has at most this many times the network's loss.
EXPLAINS = 1.5
ROUND_OFF = 1e-9
# A consistent scheme diffuses with α to within this.
DIFFUSES = 0.05


def judge(document: Mapping[str, Any], certificate: Certificate) -> tuple[bool, list[str]]:
    """Every condition with its number; all of them have to hold."""
    checks = [_explains(document), _agrees(document), *_certified(certificate)]
    return all(holds for holds, _ in checks), [f"{'yes' if holds else 'NO'}: {text}" for holds, text in checks]


def _explains(document: Mapping[str, Any]) -> tuple[bool, str]:
    loss = document["loss"]
    text = f"refitted, the formula's loss is {loss['formula']:.2e}, the network's own {loss['network']:.2e}"
    return loss["formula"] <= EXPLAINS * loss["network"] + ROUND_OFF, text


def _agrees(document: Mapping[str, Any]) -> tuple[bool, str]:
    found = document["stencil"]
    law = found["network"]
    powers = " ".join(f"{name}^{value:.2f}" for name, value in law["exponents"].items())
    text = (
        f"the network's stencil, {law['factor']:.3f} {powers}, differs from the formula's by {found['difference']:.1%}"
    )
    return bool(found["agree"]), text


def _certified(certificate: Certificate) -> list[tuple[bool, str]]:
    kept = certificate.conservation is not None and certificate.conservation.holds
    order = None if certificate.time is None else certificate.time.order
    K = _diffusivity(certificate)
    off = None if K is None else float(np.abs(K - np.eye(2)).max())
    return [
        (kept, "the scheme conserves heat" if kept else "the scheme does not conserve heat"),
        (
            order is not None and order >= 0.9,
            f"its order in time is {'not established' if order is None else f'{order:.2f}'}",
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
