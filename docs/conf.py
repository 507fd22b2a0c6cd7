"""How `make docs` turns these pages into HTML that needs no network."""

import sys
from pathlib import Path

import fluxforge

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "fluxforge"
version = release = fluxforge.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "from_code",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
smartquotes = False  # two hyphens open an option

html_theme = "furo"
html_title = f"fluxforge {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"
pygments_style = "friendly"
pygments_dark_style = "monokai"

# Signatures with shapes are long: one argument a line, types by their last name.
maximum_signature_line_length = 90
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
