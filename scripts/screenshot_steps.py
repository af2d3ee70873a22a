"""Actions on pages before their screenshots, for states that no URL has."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

Step = Callable[[Page], None]


def ask_for_a_refund(page: Page) -> None:
    """Start a run that waits for an approval."""
    page.get_by_label("Message").fill('issue-refund {"order": "A-104", "amount": 180}')
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#tried").get_by_role("button", name="Approve")).to_be_visible(timeout=60_000)


def open_everything(page: Page) -> None:
    """Open all sections and rows, but no menus."""
    page.evaluate("document.querySelectorAll('main details:not(.menu)').forEach((each) => { each.open = true })")


def save_faults(page: Page) -> None:
    """Save inputs of a variant, of a background task and of the model with errors."""
    page.locator("#variants > summary").click()
    page.get_by_text("Add a memory variant").click()
    page.locator(".variant-new[open] select[name$=-kind]").select_option("options")
    page.locator(".variant-new[open] input[name$='.lastMessages']").fill("-1")
    page.get_by_label("Temperature").first.fill("hot")
    page.keyboard.press("Control+s")
    expect(page.locator("[data-row-error]").first).to_be_visible()


def review_a_change(page: Page) -> None:
    """Open the dialog in which changes are saved."""
    page.get_by_role("textbox", name="Description").first.fill("Counts the stock of all warehouses.")
    page.get_by_role("link", name="Review changes").or_(
        page.get_by_role("button", name="Review changes")
    ).first.click()
    expect(page.locator("dialog[open]")).to_be_visible()


def save_an_invalid_object(page: Page) -> None:
    """Save a working memory that does not fit its schema."""
    page.get_by_role("textbox", name="Age").fill("seven")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".field-error:visible").first).to_be_visible()


def open_publish_dialog(page: Page) -> None:
    """Open the dialog that publishes an older version."""
    page.evaluate(
        "path => void htmx.ajax('GET', path, {target: '#dialogs', swap: 'innerHTML'})", f"{page.url}/5/activate"
    )
    expect(page.locator("dialog[open]")).to_be_visible()


def choose_type(kind: str) -> Step:
    """Return a step that chooses the type of a scorer."""

    def choose(page: Page) -> None:
        page.get_by_label("Type", exact=True).first.select_option(kind)

    return choose


AGENT = "/agents/reply-drafter"
PREPARED_PAGES: dict[str, tuple[str, Step]] = {
    "playground-approval": ("/agents/returns-desk/try", ask_for_a_refund),
    "variant-editor": ("/agents/returns-desk", open_everything),
    "editor-errors": ("/agents/stock-keeper", save_faults),
    "review-changes": ("/agents/stock-keeper", review_a_change),
    "publish-dialog": (f"{AGENT}/versions", open_publish_dialog),
    "new-judge": ("/new-scorer", choose_type("llm-judge")),
    "new-check": ("/new-scorer", choose_type("check")),
    "new-trajectory": ("/new-scorer", choose_type("trajectory")),
    "new-pipeline": ("/new-scorer", choose_type("pipeline")),
    "working-memory": ("/threads/profile/working-memory", open_everything),
    "working-memory-faults": ("/threads/profile/working-memory", save_an_invalid_object),
}
