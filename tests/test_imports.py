"""What importing the package must not do."""

import subprocess
import sys

# Private, but the only place that says whether a device was opened; a change of JAX would fail the assertion below.
PROGRAM = """
import importlib, pkgutil, fluxforge
for each in pkgutil.walk_packages(fluxforge.__path__, "fluxforge."):
    if not each.name.endswith("__main__"):
        importlib.import_module(each.name)
from jax._src import xla_bridge
print(len(xla_bridge._backends))
import jax.numpy as jnp
jnp.zeros(1)
print(len(xla_bridge._backends))
"""


def test_no_module_opens_a_device_when_it_is_imported() -> None:
    """A process that has opened one has threads, and its forked children may wait for ever."""
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    before, after = map(int, found.stdout.split())
    assert before == 0
    assert after > 0
