"""Boxes for texts of several lines start with the number of lines that is asked for."""

from typing import Any

import pytest

LINES = "box => box.clientHeight / parseFloat(getComputedStyle(box).lineHeight)"
STYLE = "box => [getComputedStyle(box).paddingTop, box.clientHeight, getComputedStyle(box).lineHeight]"
LOOKS = """input => ["backgroundColor", "borderTopColor", "borderTopStyle", "color", "borderTopLeftRadius"]
  .map(name => getComputedStyle(input)[name])"""


@pytest.mark.parametrize(
    ("path", "field", "lines"), [("/new-scorer", "description", 2), ("/new-agent", "description", 2)]
)
def test_an_empty_box_has_its_lines(visit: Any, path: str, field: str, lines: int):
    page = visit("root").goto(path)

    assert page.locator(f"#id_{field}").evaluate(LINES) >= lines


def test_one_line_stands_in_the_middle_of_its_box_on_phones(visit: Any, agent: str):
    page = visit().goto(f"/agents/{agent}")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("#metadata > summary").click()
    page.locator("#metadata [data-add-row]").click()

    style = page.locator("#metadata textarea.one-line").last.evaluate(STYLE)

    padding, height, line = (float(str(size).removesuffix("px")) for size in style)
    assert abs(padding * 2 + line - height) < 2


@pytest.mark.parametrize("width", [390, 1280])
def test_a_box_of_the_admin_has_three_lines(visit: Any, width: int):
    page = visit("root").goto("/admin/agents_app/agent/add/")
    page.set_viewport_size({"width": width, "height": 844})

    assert page.get_by_label("Description").evaluate(LINES) >= 3
    assert page.get_by_label("Instructions").evaluate(LINES) >= 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_date_of_the_admin_looks_like_other_inputs(visit: Any, scheme: str):
    page = visit("root", color_scheme=scheme).goto("/admin/access_app/apikey/add/")

    assert page.get_by_label("Expires at").evaluate(LOOKS) == page.get_by_label("Name").evaluate(LOOKS)
