"""Knowledge, the response cache, background tasks and ACP agents, chosen by keyboard."""

import uuid

from playwright.sync_api import expect

from tests.browser.conftest import patch_agent


def test_they_are_chosen_by_keyboard(visit, fresh, api):
    base, name = f"manual-{uuid.uuid4().hex[:8]}", f"Manual {uuid.uuid4().hex[:8]}"
    body = {"id": base, "name": name, "embedder": "local/multilingual"}
    assert api.post("/api/knowledge", json=body).status_code == 201
    patch_agent(api, fresh, tools=["calculator"])
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    if not page.get_by_text(name).count():  # other processes know of a new base within a second
        page.wait_for_timeout(1000)
        page = visitor.goto(f"/agents/{fresh}")
    for section in ("knowledge", "background-tasks", "processors"):
        page.locator(f"#{section} > summary").press("Enter")

    page.get_by_role("checkbox", name=name).press("Space")
    page.keyboard.press("Tab")  # the link to the knowledge base
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("3")
    page.get_by_label("Runs", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.type("20")
    page.locator("#input_processors-picker summary").press("Enter")
    page.keyboard.type("response cache")
    expect(page.locator("#input_processors-options [data-option]")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("#input_processors-picker [data-row][data-key=response-cache]")).to_be_visible()
    page.keyboard.press("Control+s")

    expect(page.locator(".toast").last).to_contain_text("saved")
    draft = api.get(f"/api/stored/agents/{fresh}", params={"status": "draft"}).json()
    assert draft["knowledge"] == {base: {"topK": 3}}
    assert draft["backgroundTasks"]["tools"]["calculator"]["timeoutMs"] == 20_000
    assert draft["inputProcessors"][0]["key"] == "response-cache"
    assert visitor.console == []
    api.delete(f"/api/knowledge/{base}")


def test_an_acp_agent_is_chosen_as_a_tool_and_as_a_sub_agent_by_keyboard(visit, fresh, api, served):
    key = f"coder-{uuid.uuid4().hex[:8]}"
    with served.client(served.keys["root"]) as root:
        body = {"id": key, "title": f"Programmer {key}", "commandKey": "coder", "enabled": True}
        assert root.post("/api/stored/acp-agents", json=body).status_code == 201
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    for section, field in (("tools", "tools"), ("sub-agents", "agents")):
        page.locator(f"#{section} > summary").press("Enter")
        page.locator(f"#{field}-picker summary").press("Enter")
        page.keyboard.type(key)
        option = page.locator(f"#{field}-options [data-option='acp-{key}']")
        expect(option).to_have_count(1)
        expect(page.locator(f"#{field}-options [data-option]")).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.locator(f"#{field}-picker [data-row][data-key='acp-{key}']")).to_be_visible()
        page.keyboard.press("Escape")
    page.keyboard.press("Control+s")

    expect(page.locator(".toast").last).to_contain_text("saved")
    draft = api.get(f"/api/stored/agents/{fresh}", params={"status": "draft"}).json()
    assert f"acp-{key}" in draft["tools"]
    assert f"acp-{key}" in draft["agents"]
    assert visitor.console == []
    with served.client(served.keys["root"]) as root:
        root.delete(f"/api/stored/acp-agents/{key}")
