"""Export and import in a browser."""

import json
import uuid
from typing import Any

import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize("script", [True, False])
def test_selected_agents_are_exported_and_imported(visit: Any, agent: str, api: Any, tmp_path: Any, script: bool):
    word = f"w{uuid.uuid4().hex[:8]}"
    api.patch(f"/api/stored/agents/{agent}", json={"description": word})
    visitor = visit(java_script_enabled=script)
    page = visitor.goto(f"/?q={word}")
    page.locator("tbody [type=checkbox]").check()
    page.locator(".bulk-bar").get_by_role("button", name="Export").click()
    with page.expect_download(timeout=30_000) as download:
        page.get_by_role("link", name="Download").click(timeout=30_000)
    file = tmp_path / "agents.jsonl"
    download.value.save_as(file)
    (record,) = map(json.loads, file.read_text().splitlines())
    assert record["id"] == agent

    record["agent"]["description"] = "From a file"
    file.write_text(f"{json.dumps(record)}\n")
    page = visitor.goto("/exchange")
    page.get_by_label("Agents file").set_input_files(file)
    page.get_by_role("button", name="Check the file").click()
    expect(page.locator("tbody tr")).to_contain_text("Change", timeout=30_000)
    page.get_by_role("button", name="Import changes as drafts").click()
    expect(page.locator("tbody tr")).to_contain_text("Changed", timeout=30_000)
    page.locator("tbody").get_by_role("link", name="Night porter").click()

    expect(page.locator("#agent-title")).to_contain_text("Draft ahead by 1")
    assert visitor.console == []
