"""Forms on pages with other content: leaving the page asks before what was typed there is lost."""

import uuid
from typing import Any

import httpx
from playwright.sync_api import Page, expect

from tests.browser.conftest import create_agent
from tests.browser.site.test_accessibility_of_data import post
from tests.browser.site.test_experiment_results import experiment
from tests.browser.site.test_knowledge_uploads import IS_LEAVING_ASKED

__all__ = ["experiment"]


def is_asked(page: Page) -> bool:
    return bool(page.evaluate(IS_LEAVING_ASKED))


def test_an_item_that_is_edited_in_its_row_or_not_added_yet_is_not_lost(visit: Any, served: Any):
    with served.client(served.keys["root"]) as root:
        dataset = post(root, "/datasets", {"name": f"Exam {uuid.uuid4().hex[:8]}"})["id"]
        post(root, f"/datasets/{dataset}/items", {"input": "When do you open?", "groundTruth": "At nine."})
    page = visit("root").goto(f"/datasets/{dataset}")
    new = page.locator("#new-input")
    assert not is_asked(page)

    new.fill("When do you close?")
    assert is_asked(page)
    new.fill("")
    page.get_by_role("link", name="Edit").press("Enter")
    truth = page.locator("tbody textarea").last
    expect(truth).to_be_visible()
    assert not is_asked(page)
    truth.fill("At ten.")
    assert is_asked(page)

    page.keyboard.press("Control+s")

    expect(page.locator("tbody textarea")).to_have_count(0)
    assert not is_asked(page)


def test_a_comment_of_a_review_is_not_lost(visit: Any, experiment: str):
    page = visit().goto(f"/experiments/{experiment}")
    page.get_by_text("Review the answer").press("Enter")

    page.get_by_label("Comment").fill("Too long.")

    assert is_asked(page)
    page.keyboard.press("Control+s")
    expect(page.get_by_text("Review saved.")).to_be_visible()
    assert not is_asked(page)


def test_a_message_to_a_conversation_is_not_lost(visit: Any, api: httpx.Client):
    key = f"trip-{uuid.uuid4().hex[:8]}"
    create_agent(api, key, memory="last-messages")
    body = {"messages": "Hello", "memory": {"thread": key, "resource": key}}
    assert api.post(f"/api/agents/{key}/generate", json=body).status_code == 200
    page = visit().goto(f"/threads/{key}")

    page.get_by_label("Text").fill("Are you there?")

    assert is_asked(page)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("You said: Are you there?")).to_be_visible()
    assert not is_asked(page)


def test_changed_settings_of_a_knowledge_base_are_not_lost(visit: Any, api: httpx.Client):
    base = f"manual-{uuid.uuid4().hex[:8]}"
    post(api, "/knowledge", {"id": base, "name": "Manual", "embedder": "local/multilingual"})
    page = visit().goto(f"/knowledge/{base}/settings")

    page.get_by_label("Description").fill("What the guests ask.")

    assert is_asked(page)
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("was saved.")


def test_a_score_that_is_not_saved_yet_is_not_lost(visit: Any, api: httpx.Client, agent: str):
    run = api.post(f"/api/agents/{agent}/generate", json={"messages": "Hello"}).raise_for_status().json()["runId"]
    page = visit().goto(f"/runs/{run}")
    page.get_by_text("Score this answer").click()
    assert not is_asked(page)

    page.get_by_label("Score", exact=True).fill("0.7")

    assert is_asked(page)
    page.keyboard.press("Control+s")
    expect(page.locator(".scores")).to_contain_text("0.70")
    assert not is_asked(page)


def test_the_reason_of_a_declined_call_is_not_lost(visit: Any, api: httpx.Client):
    agent = f"clerk-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent, tools=["issue-refund"], model={"provider": "demo", "name": "storyteller"})
    body = {"messages": 'issue-refund {"order": "A-1", "amount": 180}'}
    run = api.post(f"/api/agents/{agent}/generate", json=body).raise_for_status().json()["runId"]
    page = visit().goto(f"/runs/{run}")
    page.get_by_role("link", name="Decline").click()
    reason = page.get_by_label("Reason")
    expect(reason).to_be_focused()
    assert not is_asked(page)

    reason.fill("Too much.")

    assert is_asked(page)
    page.get_by_role("button", name="Decline").click()
    expect(reason).to_have_count(0)
    assert not is_asked(page)


def test_a_gate_that_is_not_saved_yet_is_not_lost(visit: Any, served: Any, agent: str):
    with served.client(served.keys["root"]) as root:
        post(root, "/datasets", {"name": f"Exam {uuid.uuid4().hex[:8]}"})
    page = visit("root").goto(f"/agents/{agent}/gates/add")
    assert not is_asked(page)

    page.get_by_label("At least").fill("0.9")

    assert is_asked(page)


def test_the_options_of_an_experiment_are_not_lost(visit: Any, served: Any, agent: str):
    with served.client(served.keys["root"]) as root:
        dataset = post(root, "/datasets", {"name": f"Exam {uuid.uuid4().hex[:8]}"})["id"]
        post(root, f"/datasets/{dataset}/items", {"input": "When do you open?", "groundTruth": "At nine."})
    page = visit("root").goto(f"/datasets/{dataset}/experiments/start")
    assert not is_asked(page)

    page.get_by_label("Name").fill("Before the holidays")

    assert is_asked(page)


def test_a_changed_choice_of_notices_is_not_lost(visit: Any):
    page = visit().goto("/account/notices")
    box = page.get_by_label("E-mail me about calls that wait")
    assert not is_asked(page)

    box.click()

    assert is_asked(page)
    box.click()
    assert not is_asked(page)
