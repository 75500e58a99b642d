"""A report as HTML and as PDF: each one file that stands alone, and asks nothing of the network."""

import base64
import io
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from string import Template
from typing import Final

from fpdf import FPDF
from fpdf.enums import TableBordersLayout
from markdown_it import MarkdownIt
from markdown_it.token import Token
from matplotlib import get_data_path

_FONT, _MONO = "DejaVu", "DejaVu Mono"
_SHAPES: Final = {"": "", "B": "-Bold", "I": "-Oblique", "BI": "-BoldOblique"}
_INK: Final = (28, 36, 48)
_SIZE, _SMALL = 9.0, 7.0
_HEADS: Final = {"h1": 17.0, "h2": 12.5, "h3": 10.0}
_TOGETHER_MM: Final = {"h1": 60.0, "h2": 40.0, "h3": 100.0}
"""Space that a heading keeps together with the text below; the smallest is for a chart."""
_LINE_MM: Final = 4.6
_GAP_MM: Final = 2.0
_NARROW, _WIDE = 6, 60
"""Characters of a column: at least and at most."""


def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def html_report(markdown: str, title: str) -> str:
    """Return a report as one HTML file.

    Args:
        markdown: As `planner.share.report.markdown_report` writes it; HTML in it is shown, not followed.
        title: Of the window; any text.
    """
    page = Template(files("planner.figures").joinpath("report.html").read_text(encoding="utf-8"))
    return page.substitute(title=escape(title), body=_reader().render(markdown))


def pdf_report(markdown: str, title: str) -> bytes:
    """Return a report as one PDF file, A4, with its fonts inside.

    Args:
        markdown: As `planner.share.report.markdown_report` writes it. A sign that the fonts lack becomes a box.
        title: Of the document; any text.
    """
    document = _Document(title)
    tokens = iter(_reader().parse(markdown))
    for token in tokens:
        document.block(token, tokens)
    return bytes(document.pdf.output())


class _Document:
    """A PDF that grows block by block."""

    def __init__(self, title: str) -> None:
        self.pdf = pdf = FPDF(format="A4")
        pdf.set_title(title)
        pdf.set_creator("Pulsar bundle planner")
        pdf.set_margin(15)
        fonts = Path(get_data_path()) / "fonts" / "ttf"
        for family, file in ((_FONT, "DejaVuSans"), (_MONO, "DejaVuSansMono")):
            for style, shape in _SHAPES.items():
                pdf.add_font(family, style, fonts / f"{file}{shape}.ttf")
        pdf.set_text_color(*_INK)
        pdf.add_page()
        self.marks: list[int] = []
        """Number of the next item of each list that is open; 0 for lists without numbers."""

    def block(self, token: Token, rest: Iterator[Token]) -> None:
        """Write a block that begins with a token."""
        if token.type == "heading_open":
            size = _HEADS[token.tag]
            if self.pdf.will_page_break(_TOGETHER_MM[token.tag]):
                self.pdf.add_page()
            self.pdf.ln(size / 4)
            self.text(next(rest).children or [], size, "B")
        elif token.type == "inline":
            self.text(token.children or [], _SIZE, "")
        elif token.type == "fence":
            self.pdf.set_font(_MONO, size=_SMALL)
            self.pdf.multi_cell(0, _SMALL / 2, token.content, new_x="LMARGIN", new_y="NEXT", align="L")
            self.pdf.ln(_GAP_MM)
        elif token.type == "table_open":
            self.table(list(takewhile(lambda each: each.type != "table_close", rest)))
        elif token.type in {"bullet_list_open", "ordered_list_open"}:
            self.marks.append(int(token.type == "ordered_list_open"))
        elif token.type in {"bullet_list_close", "ordered_list_close"}:
            self.marks.pop()
        elif token.type == "list_item_open":
            self.pdf.set_font(_FONT, size=_SIZE)
            self.pdf.write(_LINE_MM, f"{self.marks[-1]}. " if self.marks[-1] else "\N{BULLET} ")
            self.marks[-1] += bool(self.marks[-1])

    def text(self, tokens: list[Token], size: float, style: str) -> None:
        """Write a paragraph or a heading."""
        pdf, bold, slanted, link = self.pdf, False, False, ""
        for token in tokens:
            if token.type in {"strong_open", "strong_close"}:
                bold = token.nesting > 0
            elif token.type in {"em_open", "em_close"}:
                slanted = token.nesting > 0
            elif token.type in {"link_open", "link_close"}:
                link = str(token.attrs.get("href", ""))
            elif token.type == "image":
                self.image(str(token.attrs["src"]), token.content)
            elif token.type in {"softbreak", "hardbreak"}:
                pdf.ln(size / 2)
            else:
                shape = style or ("B" if bold else "") + ("I" if slanted else "")
                pdf.set_font(_MONO if token.type == "code_inline" else _FONT, shape, size)
                pdf.write(size / 2, token.content, link)
        pdf.ln(size / 2 + _GAP_MM)

    def image(self, source: str, words: str) -> None:
        """Draw a picture as wide as the page."""
        image = io.BytesIO(base64.b64decode(source.partition(";base64,")[2]))
        self.pdf.image(image, w=self.pdf.epw, alt_text=words)

    def table(self, tokens: list[Token]) -> None:
        """Draw a table whose columns are as wide as their words ask for."""
        rows: list[list[str]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append("".join(part.content for part in token.children or []))
        widths = [min(max(*map(len, column), _NARROW), _WIDE) + 3 for column in zip(*rows, strict=True)]
        self.pdf.set_font(_FONT, size=_SMALL)
        whole = self.pdf.epw * min(sum(widths) / 110, 1)
        with self.pdf.table(
            rows if any(rows[0]) else rows[1:],
            width=whole,
            col_widths=widths,
            align="L",
            text_align="L",
            line_height=_SMALL / 2,
            padding=0.7,
            borders_layout=TableBordersLayout.HORIZONTAL_LINES,
            first_row_as_headings=any(rows[0]),
        ):
            pass
        self.pdf.ln(_GAP_MM)
