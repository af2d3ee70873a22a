"""Documents that are dropped on the page of a knowledge base: their progress, and the error of each."""

import uuid

from playwright.sync_api import expect

from tests.browser.site.test_accessibility import find_violations

# Drops files on the form, as a person does with the mouse. The names and texts are arguments.
DROP = """([zone, files]) => {
    const data = new DataTransfer();
    for (const [name, text] of files) data.items.add(new File([text], name));
    for (const type of ["dragenter", "dragover", "drop"])
        zone.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
}"""
IS_LEAVING_ASKED = """() => {
    const event = new Event("beforeunload", { cancelable: true });
    return !dispatchEvent(event);
}"""
FILES = [
    ["Ports.md", "# Ports\n\nThe router has the port eighty." + "\n- one more port" * 40],
    ["empty.txt", ""],
    ["photo.png", "\x89PNG"],
]


def test_dropped_files_are_uploaded_with_progress_and_each_error_is_at_its_file(visit, api, axe):
    base = f"manual-{uuid.uuid4().hex[:8]}"
    body = {"id": base, "name": "Manual", "embedder": "local/multilingual"}
    assert api.post("/api/knowledge", json=body).status_code == 201
    visitor = visit()
    page = visitor.goto(f"/knowledge/{base}")
    page.get_by_role("link", name="Add documents").press("Enter")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert")).to_have_text("Choose at least one file.")
    expect(page.get_by_label("Files: text")).to_be_focused()
    sent = []
    page.route("**/upload", lambda route: sent.append(route), times=1)  # the first waits, so its progress stays

    with page.expect_request("**/upload"):
        page.evaluate(DROP, [page.locator("[data-drop]").element_handle(), FILES])

    rows = page.locator("[data-upload-list] li")
    expect(rows).to_have_count(3)
    expect(page.get_by_role("progressbar", name="Upload of Ports.md")).to_be_visible()
    assert page.evaluate(IS_LEAVING_ASKED)
    sent[0].continue_()
    expect(rows.nth(0)).to_have_text("Ports.md Uploaded")
    expect(rows.nth(1)).to_contain_text("empty.txt The file is empty")
    expect(rows.nth(2)).to_contain_text("photo.png")
    expect(rows.locator(".field-error")).to_have_count(2)
    expect(page.locator("#documents")).to_contain_text("Ready")
    assert [document["name"] for document in api.get(f"/api/knowledge/{base}/documents").json()["documents"]] == [
        "Ports.md"
    ]
    assert not page.evaluate(IS_LEAVING_ASKED)
    page.route("**/upload", lambda route: route.fulfill(status=429, body="Too many requests"))
    page.evaluate(DROP, [page.locator("[data-drop]").element_handle(), FILES[:1]])
    expect(rows.nth(3)).to_contain_text("Ports.md Too many requests.")
    assert find_violations(page, axe) == []
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label("Question").fill("Which port does the router have?")
    page.get_by_label("Question").press("Enter")
    passage = page.locator(".passage pre").first
    expect(passage).to_contain_text("one more port")
    assert passage.evaluate("element => element.scrollHeight - element.clientHeight") == 0  # it does not scroll
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    api.delete(f"/api/knowledge/{base}")
