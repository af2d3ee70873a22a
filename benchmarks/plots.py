"""Charts as static SVG, readable on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle, groupby
from math import isnan
from operator import itemgetter
from typing import Any

WIDTH, LABEL_WIDTH, VALUE_WIDTH, ROW_HEIGHT, GAP = 720, 190, 130, 18, 14
COLORS = ("#93c3cd", "#2f8296", "#0c5a6b")
STYLE = """<style>text{font:12px system-ui,sans-serif;fill:#15201c}
@media(prefers-color-scheme:dark){text{fill:#e7ede9}}</style>"""


def render_bar_chart(title: str, measurements: Sequence[Mapping[str, Any]], figure: str) -> str:
    """Return a chart with a group per operation and a bar per number of clients.

    `figure` is the key of the value in each measurement. A value that is not a number has a bar of length 0.
    """
    maximum = max((value for m in measurements if not isnan(value := m[figure])), default=1) or 1
    elements: list[str] = []
    y = 40
    for operation, group in groupby(measurements, key=itemgetter("operation")):
        y += GAP
        elements.append(text_element(0, y + 13, operation))
        for measurement, color in zip(group, cycle(COLORS), strict=False):
            elements += bar_elements(y, measurement, figure, maximum, color)
            y += ROW_HEIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + GAP}" role="img">'
    heading = text_element(0, 20, title, ' font-weight="700"')
    return "\n".join([head, f"<title>{escape(title)}</title>", STYLE, heading, *elements, "</svg>\n"])


def bar_elements(y: int, measurement: Mapping[str, Any], figure: str, maximum: float, color: str) -> list[str]:
    value = 0.0 if isnan(measurement[figure]) else measurement[figure]
    width = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) * value / maximum
    label = f"{value:.2f}" if value < 100 else f"{value:.0f}"
    return [
        f'<rect x="{LABEL_WIDTH}" y="{y + 2}" width="{width:.1f}" height="{ROW_HEIGHT - 4}" rx="2" fill="{color}"/>',
        text_element(LABEL_WIDTH + width + 6, y + 13, f"{label} at {measurement['clients']}"),
    ]


def text_element(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}"{attributes}>{escape(text)}</text>'


def render_line_chart(title: str, samples: Sequence[Mapping[str, float]], figures: Mapping[str, str]) -> str:
    """Return a chart with a panel per figure over the time of the samples, each from 0 to its maximum.

    `figures` has the label of each figure by its key. The key `seconds` of a sample is its time.
    """
    height, gap, width = 110, 46, WIDTH - 20
    end = max((sample["seconds"] for sample in samples), default=1) or 1
    elements: list[str] = []
    top = 60
    for (figure, label), color in zip(figures.items(), cycle(COLORS[1:]), strict=False):
        maximum = max((sample[figure] for sample in samples), default=1) or 1
        points = " ".join(
            f"{width * sample['seconds'] / end:.1f},{top + height * (1 - sample[figure] / maximum):.1f}"
            for sample in samples
        )
        elements.append(text_element(0, top - 10, f"{label}, at most {maximum:,.0f}"))
        elements.append(f'<line x1="0" y1="{top + height}" x2="{width}" y2="{top + height}" stroke="#8a9793"/>')
        elements.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        top += height + gap
    elements.append(text_element(0, top - 20, f"{end / 60:.0f} minutes"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" role="img">'
    heading = text_element(0, 20, title, ' font-weight="700"')
    return "\n".join([head, f"<title>{escape(title)}</title>", STYLE, heading, *elements, "</svg>\n"])
