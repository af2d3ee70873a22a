"""The list, the account pages and the admin in a browser."""

import uuid

from playwright.sync_api import expect

from tests.browser.conftest import create_agent


def test_the_list_is_used_by_keyboard(visit, api):
    word = f"w{uuid.uuid4().hex[:8]}"
    for name in ("One", "Two"):
        create_agent(api, f"{word}-{name.lower()}", name=f"{name} {word}")
    visitor = visit()
    page = visitor.goto("/")
    page.keyboard.press("/")
    page.keyboard.type(word)

    expect(page.locator(".filter-chip")).to_contain_text(word)
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("#list-status")).to_have_text("2 agents")
    assert page.url.endswith(f"/?q={word}")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Select all").press("Space")
    expect(page.locator("[data-selected-count]")).to_have_text("2 selected")
    page.get_by_role("button", name="Duplicate").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Duplicated 2 of 2")
    page.get_by_role("link", name="Back to the list").press("Enter")
    expect(page.locator("tbody tr")).to_have_count(4)

    page.get_by_label(f"Select One {word}").first.check()
    page.locator(".bulk-bar").get_by_role("button", name="Delete").click()
    page.get_by_role("link", name="Cancel").click()
    expect(page.locator("[data-selected-count]")).to_have_text("1 selected")
    expect(page.get_by_label(f"Select One {word}").first).to_be_checked()
    page.locator(".bulk-bar").get_by_role("button", name="Delete").click()
    page.get_by_label("Type “delete 1 agent” to confirm").fill("delete 1 agent")
    page.get_by_role("button", name="Delete 1 agent").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Deleted 1 of 1")
    page.get_by_role("link", name="Back to the list").click()
    expect(page.locator("tbody tr")).to_have_count(3)
    page.get_by_role("link", name=f"Remove search {word}").click()
    expect(page.locator(".filter-chip")).to_have_count(0)
    assert visitor.console == []


def test_the_heading_of_the_list_does_not_cover_the_focus(visit, api):
    word = f"w{uuid.uuid4().hex[:8]}"
    for number in range(12):
        create_agent(api, f"{word}-{number}", name=f"Row {number} {word}", description="About.")
    page = visit(own_context=True).goto(f"/?q={word}&sort=name")
    page.set_viewport_size({"width": 1280, "height": 400})
    links = page.locator("tbody a.row-title")
    links.last.focus()

    for _ in range(20):
        page.keyboard.press("Shift+Tab")
        focus = page.evaluate("document.activeElement.getBoundingClientRect().top")
        assert focus >= page.locator("thead th").first.evaluate("cell => cell.getBoundingClientRect().bottom")


def test_filters_apply_as_they_are_chosen_and_stay_in_the_url(visit, api):
    tag = f"t{uuid.uuid4().hex[:8]}"
    create_agent(api, f"{tag}-one", name="One", tools=["calculator"], metadata={"tags": [tag]})
    create_agent(api, f"{tag}-two", name="Two", metadata={"tags": [tag]})
    visitor = visit()
    page = visitor.goto("/?sort=name")

    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Tag", exact=True).select_option(tag)
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Tool", exact=True).select_option("calculator")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator(".filter-chip")).to_have_count(2)
    assert page.url.endswith(f"/?tool=calculator&tag={tag}&sort=name&panel=filters")

    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Remove tool Calculator").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    assert visitor.console == []


def test_the_list_is_searched_and_filtered_without_scripts(visit, api):
    word = f"w{uuid.uuid4().hex[:8]}"
    create_agent(api, f"{word}-one", name=f"One {word}", tools=["calculator"])
    create_agent(api, f"{word}-two", name=f"Two {word}")
    page = visit(java_script_enabled=False).goto("/")

    page.get_by_label("Search agents").fill(word)
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Tool", exact=True).select_option("calculator")
    page.get_by_role("button", name="Apply").click()

    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.url.endswith(f"/?q={word}&tool=calculator&panel=filters")


def test_an_agent_takes_two_lines_on_a_phone(visit, api):
    word = f"w{uuid.uuid4().hex[:8]}"
    fields = {"description": "Answers. " * 20, "metadata": {"tags": ["beta"]}, "tools": ["gone"]}
    create_agent(api, f"{word}-one", name=f"A very long name of an agent that has no room {word} " * 3, **fields)
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})

    page = visitor.goto(f"/?author=publisher&model=demo&owner=&updated=1d&tag=beta&panel=filters&q={word}-one")
    page.get_by_role("link", name="Remove search").click()

    assert page.locator("tbody tr").first.bounding_box()["height"] <= 72
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_key_is_created_and_revoked(visit):
    visitor = visit()
    page = visitor.goto("/account/keys")
    name = f"Export {uuid.uuid4().hex[:6]}"
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("#token")).to_contain_text("acms_")

    link = page.get_by_role("link", name=f"Revoke {name}")
    link.click()
    question = page.get_by_role("dialog", name=f"Revoke “{name}”?")
    expect(question).to_contain_text("never")
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    expect(link).to_be_focused()
    link.press("Enter")
    question.get_by_role("button", name=f"Revoke “{name}”").click()

    expect(page.locator("tr", has_text=name)).to_contain_text("Revoked")
    expect(page.locator("tr", has_text=name)).to_be_focused()
    expect(page.locator(".toast")).to_contain_text("It no longer works.")
    expect(page.locator("#token")).to_have_count(0)
    assert visitor.console == []


def test_signing_out_deletes_unsaved_text(visit, fresh):
    visitor = visit(own_session=True)
    page = visitor.goto(f"/agents/{fresh}")
    page.get_by_label("Name", exact=True).fill("Doorman")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    count_entries = "Object.keys(localStorage).filter((key) => key.startsWith('agentcms:')).length"
    assert page.evaluate(count_entries) == 1

    page.close()
    page = visitor.page = visitor.open()
    visitor.goto("/")
    page.locator(".topbar-tools summary").click()
    page.get_by_role("button", name="Sign out").click()

    page.wait_for_url("**/sign-in")
    assert page.evaluate(count_entries) == 0


def test_the_admin_works_with_the_content_security_policy(visit, fresh):
    visitor = visit("root")

    change = f"agents_app/agent/{fresh}/change/"
    for path in ("", "agents_app/agent/", change, "access_app/membership/add/", "auth/user/"):
        page = visitor.goto(f"/admin/{path}")
        expect(page.locator("#content")).to_be_visible()

    assert visitor.console == []


def test_long_names_of_teams_fit_on_a_phone(visit):
    visitor = visit("root")
    visitor.page.set_viewport_size({"width": 390, "height": 844})

    page = visitor.goto("/team")
    page.locator("#team option").first.evaluate("(option) => (option.textContent = 'crew'.repeat(16))")

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
