"""Texts that are written from right to left, as the browser lays them out."""

import uuid
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import create_agent

NAME = "\u05de\u05d5\u05e7\u05d3 \u05dc\u05d9\u05dc\u05d4"  # Hebrew
LINE = "\u0631\u062d\u0628 \u0628\u0627\u0644\u0636\u064a\u0648\u0641."  # Arabic
TEXT_RIGHT = """line => { const range = document.createRange(); range.selectNodeContents(line);
    return line.getBoundingClientRect().right - range.getBoundingClientRect().right; }"""


def test_texts_start_at_the_right(visit: Any, api: Any):
    agent = f"right-to-left-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent, name=NAME, instructions=f"{LINE}\nGreet guests.")
    visitor = visit()
    page = visitor.goto(f"/agents/{agent}")

    expect(page.get_by_role("heading", level=1)).to_have_css("direction", "rtl")
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_css("direction", "rtl")
    page.get_by_role("textbox", name="Instructions").focus()  # loads the editor of long texts
    lines = page.locator(".cm-line")
    expect(lines).to_have_count(2)
    first, second = lines.all()
    assert first.evaluate(TEXT_RIGHT) < 30
    assert second.evaluate(TEXT_RIGHT) > 100

    page = visitor.goto(f"/agents/{agent}/versions/1")
    text = page.locator(".reading")
    expect(text).to_have_css("direction", "rtl")
    expect(text).to_have_css("text-align", "start")
    assert visitor.console == []
    page = visit("root").goto(f"/admin/agents_app/agent/?q={agent}")
    expect(page.locator("#result_list th.field-name")).to_have_css("unicode-bidi", "plaintext")
