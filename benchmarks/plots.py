"""Plots as SVG, without a library and without a script: bars in groups, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, LABELS, ROW, GAP = 720, 190, 18, 14
SHADES = ("#93c3cd", "#2f8296", "#0c5a6b")
STYLE = """<style>text{font:12px system-ui,sans-serif;fill:#15201c}
@media(prefers-color-scheme:dark){text{fill:#e7ede9}}</style>"""


def bars(title: str, cells: Sequence[Mapping[str, Any]], unit: str) -> str:
    """A group of bars per operation, one bar per number of clients; `unit` names the figure in each cell."""
    most = max((cell[unit] for cell in cells if cell[unit] == cell[unit]), default=1) or 1
    drawn: list[str] = []
    y, before = 40, None
    for cell in cells:
        if cell["operation"] != before:
            y += GAP
            drawn.append(text(0, y + 13, cell["operation"]))
            before, shade = cell["operation"], 0
        drawn += bar(y, cell, unit, most, SHADES[shade % len(SHADES)])
        shade += 1
        y += ROW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + GAP}" role="img">'
    return "\n".join(
        [head, f"<title>{escape(title)}</title>", STYLE, text(0, 20, title, bold=True), *drawn, "</svg>\n"]
    )


def bar(y: int, cell: Mapping[str, Any], unit: str, most: float, shade: str) -> list[str]:
    value = cell[unit] if cell[unit] == cell[unit] else 0.0
    width = (WIDTH - LABELS - 130) * value / most
    figure = f"{value:.2f}" if value < 100 else f"{value:.0f}"
    return [
        f'<rect x="{LABELS}" y="{y + 2}" width="{width:.1f}" height="{ROW - 4}" rx="2" fill="{shade}"/>',
        text(LABELS + width + 6, y + 13, f"{figure} at {cell['clients']}"),
    ]


def text(x: float, y: float, words: str, bold: bool = False) -> str:
    weight = ' font-weight="700"' if bold else ""
    return f'<text x="{x:.1f}" y="{y}"{weight}>{escape(words)}</text>'
