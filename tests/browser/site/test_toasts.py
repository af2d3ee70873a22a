"""Toasts disappear by themselves, unless somebody is about to use them."""

from typing import Any

from playwright.sync_api import expect

SHOW_TOAST = "agentcms.showToast({ message: 'Draft discarded.', undo: '/nowhere' })"
LONG_ENOUGH = 60_000  # milliseconds


def test_a_toast_stays_while_it_has_the_focus_or_the_pointer(visit: Any):
    page = visit(own_context=True).goto("/")
    page.clock.install()  # for all pages of the context
    page.evaluate(SHOW_TOAST)
    toast = page.locator(".toast")
    undo = toast.get_by_role("button", name="Undo")

    undo.hover()
    undo.focus()
    page.mouse.move(0, 0)
    page.clock.run_for(LONG_ENOUGH)
    expect(undo).to_be_focused()

    undo.hover()
    page.locator("#list-q").focus()
    page.clock.run_for(LONG_ENOUGH)
    expect(toast).to_be_visible()

    page.mouse.move(0, 0)
    page.clock.run_for(LONG_ENOUGH)
    expect(toast).to_have_count(0)
