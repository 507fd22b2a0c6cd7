"""FiPy, which is an extra: imported where it is used, absent where it is not installed."""

import sys
import warnings
from typing import Any
from unittest.mock import patch

HOW_TO_INSTALL = "not installed: pip install 'fluxforge[bench]'"


def load_fipy() -> Any | None:
    """The package, or None where it is not installed."""
    try:
        # FiPy chooses a solver suite from the command line's words when it is imported, and warns of its own code.
        with patch.object(sys, "argv", sys.argv[:1]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import fipy
    except ImportError:
        return None
    return fipy
