"""The text of HTML documents, as passages show it."""

import pytest

from knowledge_app.documents.extraction import extract_text
from knowledge_app.documents.media_types import HTML

PAGES = {
    "paragraphs in items": (
        "<ul><li>\n <p>One</p>\n <p>More</p>\n</li><li><div><b>T</b>wo</div></li></ul>",
        "- One\n\nMore\n\n- Two",
    ),
    "nested lists": ("<ul><li>One<ul><li>A</li></ul></li><li>Two</li></ul>", "- One\n    - A\n- Two"),
    "ordered lists": (
        "<p>Steps</p><ol><li>Open<ol><li><p>Look</p></li><li>Wait</li></ol></li>\n<li>Close</li></ol><p>Done</p>",
        "Steps\n\n1. Open\n    1. Look\n\n    2. Wait\n2. Close\n\nDone",
    ),
    "text after an inner list": (
        "<ul><li>One<ul><li>A</li>\n</ul>\nmore</li><li>Two</ul>",
        "- One\n    - A\nmore\n- Two",
    ),
    "a list in a cell": ("<table><tr><td><ul><li>A</li></ul></td><td>b</td></tr></table>", "- A b"),
    "items without a list": ("<li>One</li><li>Two</li></ul><p>Three", "- One\n- Two\n\nThree"),
    "lists one after the other": ("<ol><li>A</li></ol><ul><li>B</li></ul><ol><li>C</li></ol>", "1. A\n\n- B\n\n1. C"),
    "paragraphs in cells": (
        "<table><tr><th><p>Item</p></th><th><p>Price</p></th></tr>"
        "<tr><td>\n<p>Tea</p>\n</td><td>2 €</td></tr></table>",
        "Item Price\n\nTea 2 €",
    ),
    "an empty cell": ("<p>Prices</p><table><tr><td></td><td>Tea</td></tr></table>", "Prices\n\nTea"),
    "tables in cells": ("<table><tr><td>a<table><tr><td><p>b</table></table>c", "a\n\nb\n\nc"),
    "a cell without a table": ("</td><td>a</td></td><p>b", "a\n\nb"),
    "code": ("<pre>if x:\n    return  1</pre>", "if x:\n    return  1"),
    "inline elements": ("<p>H<sub>2</sub>O &amp; <code>a&lt;b</code>,\n<i>now</i></p>", "H2O & a<b, now"),
    "details": ("<details><summary>More</summary>Text</details>", "More\n\nText"),
    "what is not shown": ("<p>a<script>'<p>'</script><style>p{}</style><!-- c --><svg><text>s</text></svg>b", "ab"),
    "open elements": ("<h1>A<p>b <b>c<div>d", "# A\n\nb c\n\nd"),
}


@pytest.mark.parametrize("name", PAGES)
def test_html_becomes_lines_of_text(name):
    html, expected = PAGES[name]

    assert extract_text(html.encode(), HTML).text == expected
