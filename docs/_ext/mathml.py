r"""LaTeX → MathML, which browsers typeset by themselves: \frac{a}{b} → <mfrac>…</mfrac>."""

import re
from collections.abc import Callable
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_log = logging.getLogger(__name__)

# Browsers know bold letters as characters of their own, and no longer as an attribute.
_BOLD = {
    letter: chr(first + k)
    for first, letters in ((0x1D400, ascii_uppercase), (0x1D41A, ascii_lowercase))
    for k, letter in enumerate(letters)
}
_LETTER, _PRIME = "<mi>[^<]*</mi>", "&#x02032;"
_MARK = f'<mo lspace="0" rspace="0">{_PRIME}</mo>'
_THIN = '<mspace width="0.17em"/>'
_MENDED: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r'<mi mathvariant="bold">([A-Za-z])</mi>', lambda found: f"<mi>{_BOLD[found[1]]}</mi>"),
    # A prime is high enough by itself, and need not be raised.
    (rf"<msup>({_LETTER})<mi>({_PRIME})</mi></msup>", rf"<mrow>\1{_MARK}</mrow>"),
    (rf"<msubsup>({_LETTER})({_LETTER})<mi>({_PRIME})</mi></msubsup>", rf"<msub><mrow>\1{_MARK}</mrow>\2</msub>"),
    (r"(&#x0003D;|&#x00028;)</mo><mo>&#x02212;</mo>", r'\1</mo><mo form="prefix">&#x02212;</mo>'),  # a sign
    (r"<mo>(&#x02202;)</mo>", r"<mi>\1</mi>"),  # ∂, no space around it
    (r"<mo[^>]*>(&#x0002F;|&#x0007C;|&#x02016;)</mo>", r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>'),
    (r"(?<=</mi>)(<mi>(?:sin|cos|exp|log)</mi>)", rf"{_THIN}\1"),
    (r"(<mi>(?:sin|cos|exp|log)</mi>)(?=<mi>)", rf"\1{_THIN}"),
)


def mathml(latex: str, display: str) -> str:
    """The formula, `inline` or as a `block`; what is not understood is a ValueError that shows it."""
    text = convert(latex, display=display)
    if lost := re.search(r"<m[io][^>]*>(\\[^<]*|&)</m[io]>", text):
        raise ValueError(f"{lost[1]!r} in the formula {latex!r}")
    for pattern, better in _MENDED:
        text = re.sub(pattern, better, text)
    return text


def _typeset(node: nodes.Element, display: str) -> str:
    latex = node.astext()
    try:
        return mathml(latex, display)
    except Exception as error:
        _log.warning("cannot be typeset: %s", error, location=node)
        return f"<code>{latex}</code>"


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_typeset(node, "inline"))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(f"{_typeset(node, 'block')}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer `mathml`."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
