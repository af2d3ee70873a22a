"""Steps on the page of the editor that several tests take."""


def instructions(page):
    return page.get_by_role("textbox", name="Instructions")


def append_text(page, text):
    """Type at the end of the instructions."""
    instructions(page).press("Control+End")
    page.keyboard.type(text)


def publish(page):
    """Publish the text of the editor, in the review."""
    page.get_by_role("button", name="Review changes").click()
    page.locator("dialog[open]").get_by_role("button", name="Publish v").click()


def open_section(page, section):
    page.locator(f"#{section} > summary").click()


def stored(api, agent):
    return api.get(f"/api/stored/agents/{agent}", params={"status": "draft"}).json()
