r"""The LaTeX that schemes are emitted in → MathML, which browsers typeset: \frac{a}{b} → <mfrac>…</mfrac>."""

import re
from html.entities import name2codepoint

from markupsafe import Markup

from fluxforge.scheme import Scheme
from fluxforge.scheme.emit import emit_latex

_TOKENS = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|[^\s]", re.DOTALL)
_OPERATORS = {r"\in": "∈", r"\to": "→", r"\cdot": "⋅", "-": "−", **{c: c for c in "+=,/|"}}
_SPACES = {r"\,": "0.17em", r"\quad": "1em", r"\qquad": "2em"}
_SCRIPT = {"N": "𝒩"}


def typeset(scheme: Scheme) -> Markup:
    """The scheme's formulas, a message or output a row, aligned at the equals signs."""
    latex = emit_latex(scheme)
    body = latex[latex.index(r"\begin{aligned}") + len(r"\begin{aligned}") : latex.index(r"\end{aligned}")]
    rows = Markup("").join(_row(row) for row in body.split("\\\\\n"))
    return Markup('<math display="block"><mtable displaystyle="true">{}</mtable></math>').format(rows)


def mathml(latex: str) -> Markup:
    """One formula of the subset our emitter writes; an unknown command is shown by its name."""
    return _Reader(_TOKENS.findall(latex)).sequence()


def _row(latex: str) -> Markup:
    cells = (Markup("<mtd>{}</mtd>").format(mathml(cell)) for cell in latex.split("&"))
    return Markup("<mtr>{}</mtr>").format(Markup("").join(cells))


class _Reader:
    """Reads tokens from the left, one element and its scripts at a time."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens[::-1]

    def sequence(self, end: str | None = None) -> Markup:
        """Elements up to the token `end`, which is taken too."""
        found = []
        while self._tokens:
            if self._tokens[-1] == end:
                self._tokens.pop()
                break
            found.append(self._scripted())
        return Markup("").join(found)

    def _scripted(self) -> Markup:
        is_sum = self._tokens[-1] == r"\sum"
        base = self._element()
        scripts: dict[str, Markup] = {}
        while self._tokens and self._tokens[-1] in ("_", "^"):
            mark = self._tokens.pop()
            scripts[mark] = _group(_tight(self._element()))
        return _with_scripts(base, scripts, is_sum)

    def _element(self) -> Markup:
        token = self._tokens.pop()
        if token == "{":
            return _group(self.sequence("}"))
        if token in (r"\left", r"\biggl"):
            return self._fenced(token)
        if token in (r"\frac", r"\sqrt", r"\overline"):
            return self._built(token)
        if token in (r"\mathrm", r"\operatorname", r"\mathcal"):
            return _word(self._raw())
        return _leaf(token)

    def _built(self, command: str) -> Markup:
        first = self._element()
        if command == r"\frac":
            return Markup("<mfrac>{}{}</mfrac>").format(first, self._element())
        if command == r"\sqrt":
            return Markup("<msqrt>{}</msqrt>").format(first)
        return Markup('<mover>{}<mo stretchy="true">¯</mo></mover>').format(first)

    def _fenced(self, command: str) -> Markup:
        """A pair of brackets around what it encloses; a sum broken over lines closes its bracket on a later one."""
        opening = self._tokens.pop()
        closing = r"\right" if command == r"\left" else r"\biggr"
        if closing not in self._tokens:
            return _fence(opening, "<mfrac>")
        inside = self.sequence(closing)
        return _group(_fence(opening, inside) + inside + _fence(self._tokens.pop(), inside))

    def _raw(self) -> str:
        self._tokens.pop()
        letters = []
        while (token := self._tokens.pop()) != "}":
            letters.append(token)
        return "".join(letters)


def _with_scripts(base: Markup, scripts: dict[str, Markup], is_sum: bool) -> Markup:
    marks = "".join(mark for mark in "_^" if mark in scripts)
    if not marks:
        return base
    tag = {"_": "munder" if is_sum else "msub", "^": "msup", "_^": "msubsup"}[marks]
    return Markup(f"<{tag}>{{}}{{}}</{tag}>").format(base, Markup("").join(scripts[mark] for mark in marks))


def _tight(script: Markup) -> Markup:
    """Operators without space around them, as scripts are set."""
    return Markup(str(script).replace("<mo>", '<mo lspace="0" rspace="0">'))


def _group(inside: Markup) -> Markup:
    return Markup("<mrow>{}</mrow>").format(inside)


def _fence(bracket: str, inside: str) -> Markup:
    """Only around what is tall: a stretched bracket brings space of its own."""
    tall = any(tag in inside for tag in ("<mfrac>", "<msqrt>", "<mover>"))
    return Markup('<mo stretchy="{}">{}</mo>').format(str(tall).lower(), bracket)


def _word(text: str) -> Markup:
    if text in _SCRIPT:
        return Markup("<mi>{}</mi>").format(_SCRIPT[text])
    return Markup("<mtext>{}</mtext>").format(text)


def _leaf(token: str) -> Markup:
    if token in _SPACES:
        return Markup('<mspace width="{}"></mspace>').format(_SPACES[token])
    if token == r"\sum":
        return Markup("<mo>∑</mo>")
    if token == r"\biggr":
        return Markup("")
    if token in _OPERATORS:
        return Markup("<mo>{}</mo>").format(_OPERATORS[token])
    if token in "()[]":
        return Markup('<mo stretchy="false">{}</mo>').format(token)
    if token[0].isdigit():
        return Markup("<mn>{}</mn>").format(token)
    if token == r"\Delta":
        return Markup('<mi mathvariant="normal">Δ</mi>')
    if token.isalpha() or token[1:] in name2codepoint:
        return Markup("<mi>{}</mi>").format(token if token.isalpha() else chr(name2codepoint[token[1:]]))
    return Markup("<mtext>{}</mtext>").format(token.lstrip("\\"))
