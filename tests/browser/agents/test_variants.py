"""Variants in the editor in a browser: options of a memory and groups of conditions as fields."""

from typing import Any

from playwright.sync_api import expect


def test_a_variant_has_options_of_a_memory_and_a_group_of_conditions(visit: Any, agent: str, api: Any):
    page = visit().goto(f"/agents/{agent}")
    page.locator("#variants > summary").click()
    page.get_by_text("Add a memory variant").click()
    new = page.locator(".variant-new[open]")
    new.get_by_label("Memory", exact=True).select_option(label="Options of this variant")
    expect(new.get_by_label("Registered memory")).to_be_hidden()
    new.get_by_label("Last messages").fill("20")
    new.get_by_label("Fact of condition 1 of the new variant of memory").fill("tier")
    new.get_by_label("Value of condition 1 of the new variant of memory").fill("pro")
    new.get_by_text("Add a group of conditions").click()
    new.get_by_label("Fact of condition 1 of the new group").fill("seats")
    new.get_by_label("Operator of condition 1 of the new group").select_option(label="more than")
    new.get_by_label("Value of condition 1 of the new group").fill("5")
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Draft v4 saved")

    page.reload()
    remove = page.get_by_role("button", name="Remove group 2 of variant 1 of memory")
    expect(page.get_by_label("Fact of condition 1 of group 2 of variant 1 of memory")).to_have_value("seats")
    saved = api.get(f"/api/stored/agents/{agent}", params={"status": "draft"}).json()["conditional"]["memory"][0]
    remove.click()
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Draft v5 saved")
    after = api.get(f"/api/stored/agents/{agent}", params={"status": "draft"}).json()["conditional"]["memory"][0]

    tier = {"field": "tier", "operator": "equals", "value": "pro"}
    seats = {"field": "seats", "operator": "greater_than", "value": 5}
    assert saved["value"] == {"options": {"lastMessages": 20}}
    assert saved["rules"]["conditions"] == [tier, {"operator": "OR", "conditions": [seats]}]
    assert after["rules"] == {"operator": "AND", "conditions": [tier]}
