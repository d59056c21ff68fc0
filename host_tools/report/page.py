"""A self-contained HTML page: sections of text, tables, figures and pictures, all inside one file.

Nothing is loaded from elsewhere, so the page can be mailed, archived and opened without a network. All text is escaped.
"""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge.files import write_atomic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from matplotlib.figure import Figure

_STYLE = """
:root { --ink: #1c2330; --soft: #5b6577; --line: #dfe3ea; --paper: #fff; --wash: #f5f7fa; --accent: #2458c5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf2; --soft: #9aa5b8; --line: #303949; --paper: #151a22; --wash: #1d242f; --accent: #7fa7ff; }
  figure.plot img { background: #fff; border-radius: 6px; }
}
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
header, main { max-width: 1080px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 36px; }
h1 { font-size: 26px; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 19px; margin: 40px 0 10px; padding-top: 14px; border-top: 1px solid var(--line); }
h3 { font-size: 16px; margin: 24px 0 8px; }
p { max-width: 76ch; margin: 8px 0; }
.subtitle, figcaption, .caption { color: var(--soft); }
nav { margin: 14px 0; display: flex; flex-wrap: wrap; gap: 6px 16px; }
a { color: var(--accent); text-decoration: none; }
.note { border-left: 3px solid var(--accent); background: var(--wash); padding: 8px 14px; margin: 12px 0;
  max-width: 86ch; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 8px 0; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 4px 12px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; }
td.best { font-weight: 700; }
figure { margin: 14px 0; }
figure img, video { max-width: 100%; height: auto; display: block; border-radius: 6px; }
figcaption, .caption { font-size: 13px; margin-top: 5px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 14px; }
.tiles figure { margin: 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 10px; margin: 16px 0; }
.facts div { background: var(--wash); border-radius: 8px; padding: 10px 14px; }
.facts b { display: block; font-size: 21px; font-weight: 650; }
.facts span { color: var(--soft); font-size: 13px; }
footer { max-width: 1080px; margin: 40px auto; padding: 14px 24px; color: var(--soft); font-size: 13px; }
"""


class Page:
    """Build a page from top to bottom, then `write` it.

    Examples
    --------
    >>> page = Page("Report", subtitle="one run")
    >>> section = page.section("Scores")
    >>> section.table(["system", "F1"], [["ours", 0.5]])
    >>> "<td>ours</td>" in page.render()
    True
    """

    def __init__(self, title: str, *, subtitle: str = "", footer: str = "") -> None:
        self._title, self._subtitle, self._footer = title, subtitle, footer
        self._sections: list[Section] = []

    def section(self, title: str) -> Section:
        """Begin a section; it is listed in the page's navigation."""
        section = Section(title)
        self._sections.append(section)
        return section

    def render(self) -> str:
        """Return the whole page."""
        nav = "".join(f'<a href="#s{i}">{_text(s.title)}</a>' for i, s in enumerate(self._sections))
        body = "".join(
            f'<section><h2 id="s{i}">{_text(s.title)}</h2>{"".join(s.parts)}</section>'
            for i, s in enumerate(self._sections)
        )
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{_text(self._title)}</title><style>{_STYLE}</style></head><body>"
            f'<header><h1>{_text(self._title)}</h1><div class="subtitle">{_text(self._subtitle)}</div>'
            f"<nav>{nav}</nav></header><main>{body}</main><footer>{_text(self._footer)}</footer></body></html>\n"
        )

    def write(self, path: Path) -> None:
        """Write the page to `path` in one step."""
        write_atomic(path, self.render())


class Section:
    """One section of a page; each method appends to it."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.parts: list[str] = []

    def heading(self, text: str) -> None:
        self.parts.append(f"<h3>{_text(text)}</h3>")

    def text(self, text: str) -> None:
        self.parts.append(f"<p>{_text(text)}</p>")

    def note(self, text: str) -> None:
        """Append a text that must not be missed."""
        self.parts.append(f'<div class="note">{_text(text)}</div>')

    def facts(self, facts: Mapping[str, object]) -> None:
        """Append a row of large figures, label -> value."""
        tiles = "".join(f"<div><b>{_text(cell(v))}</b><span>{_text(k)}</span></div>" for k, v in facts.items())
        self.parts.append(f'<div class="facts">{tiles}</div>')

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        caption: str = "",
        best: Mapping[int, int] | None = None,
    ) -> None:
        """Append a table. `best` maps a column to the row whose cell is set in bold."""
        numeric = [all(isinstance(row[i], int | float) or row[i] is None for row in rows) for i in range(len(columns))]
        head = "".join(_cell("th", c, number=n) for c, n in zip(columns, numeric, strict=True))
        lines = []
        for number, row in enumerate(rows):
            cells = [
                _cell("td", cell(value), number=numeric[i], best=(best or {}).get(i) == number)
                for i, value in enumerate(row)
            ]
            lines.append(f"<tr>{''.join(cells)}</tr>")
        note = f'<div class="caption">{_text(caption)}</div>' if caption else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        self.parts.append(f'<div class="scroll">{table}</div>{note}')

    def figure(self, figure: Figure, caption: str = "") -> None:
        """Append a matplotlib figure as SVG, and close it."""
        import matplotlib.pyplot as plt

        buffer = io.BytesIO()
        with plt.rc_context({"svg.hashsalt": "emogaze"}):  # else ids are random, and equal results give other pages
            figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
        self.parts.append(_figure(_data_uri(buffer.getvalue(), "image/svg+xml"), caption, "plot"))

    def picture(self, image: npt.NDArray[np.uint8], caption: str = "", *, width: int = 900) -> None:
        """Append one picture, uint8 (h, w, 3) BGR, at most `width` pixels wide."""
        self.parts.append(_figure(_jpeg_uri(image, width), caption))

    def pictures(self, items: Sequence[tuple[npt.NDArray[np.uint8], str]], *, width: int = 480) -> None:
        """Append pictures with captions, side by side."""
        tiles = "".join(_figure(_jpeg_uri(image, width), caption) for image, caption in items)
        self.parts.append(f'<div class="tiles">{tiles}</div>')

    def html(self, markup: str) -> None:
        """Append markup as it is; the caller has escaped what came from outside."""
        self.parts.append(markup)


def cell(value: object) -> str:
    """Return a table cell's text: floats with four significant digits, undefined values as a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _text(text: str) -> str:
    return html.escape(text, quote=True)


def _cell(tag: str, text: str, *, number: bool = False, best: bool = False) -> str:
    classes = " ".join(name for name, on in (("number", number), ("best", best)) if on)
    attribute = f' class="{classes}"' if classes else ""
    return f"<{tag}{attribute}>{_text(text)}</{tag}>"


def _figure(uri: str, caption: str, kind: str = "picture") -> str:
    note = f"<figcaption>{_text(caption)}</figcaption>" if caption else ""
    return f'<figure class="{kind}"><img alt="{_text(caption)}" src="{uri}">{note}</figure>'


def _data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _jpeg_uri(image: npt.NDArray[np.uint8], width: int) -> str:
    import cv2

    picture: Any = image
    if image.shape[1] > width:
        height = max(1, round(image.shape[0] * width / image.shape[1]))
        picture = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return _data_uri(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 82])[1].tobytes(), "image/jpeg")
