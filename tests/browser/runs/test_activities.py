"""Activities of ACP agents while an answer streams, as the page of a run shows them afterwards."""

import json
import uuid

from playwright.sync_api import expect

from tests.browser.conftest import create_agent

EVENTS = [
    ("acp-session", {"message": "A new session began."}),
    ("acp-thought", {"text": "First read "}),
    ("acp-thought", {"text": "<b>all</b>."}),
    ("acp-plan", {"entries": [{"content": "Read", "status": "in_progress"}, {"content": "Write"}]}),
    ("acp-tool-call", {"toolCallId": "1", "title": "Read notes.txt", "status": "in_progress"}),
    ("acp-plan", {"entries": [{"content": "Read", "status": "completed"}, {"content": "Write"}]}),
    ("acp-tool-call", {"toolCallId": "1", "title": "Read notes.txt", "status": "completed"}),
    ("acp-file", {"action": "write", "path": "notes.txt"}),
    ("acp-permission", {"title": "Delete notes.txt", "allowed": False, "reason": "No person decides here."}),
    ("acp-usage", {"totalTokens": 10}),
    ("acp-crash", {"exitCode": 3, "stderr": ""}),
]
SHOW = """(events) => {
  const answer = agentcms.createAnswer(document.querySelector("[data-answer]"));
  for (const [type, payload] of events) agentcms.showEvent(answer, { type, payload });
}"""


def test_activities_are_shown_as_they_arrive(visit, slow, ask):
    visitor = visit()
    page = ask(visitor, slow)
    expect(page.locator("[data-answer][aria-busy]")).to_be_visible()

    page.evaluate(SHOW, EVENTS)

    activities = page.locator("[data-activity]")
    expect(activities).to_have_count(7)
    expect(activities.nth(1)).to_contain_text("First read <b>all</b>.")
    expect(activities.nth(2)).to_contain_text("2 steps")
    activities.nth(2).locator("summary").click()
    expect(activities.nth(2).locator("p").first).to_have_text("Read (completed)")
    expect(activities.nth(3)).to_contain_text("completed")
    expect(activities.nth(4)).to_contain_text("Wrote notes.txt")
    expect(activities.nth(5)).to_contain_text("rejected")
    expect(activities.nth(6)).to_contain_text("exit 3")
    assert visitor.console == []


def test_thoughts_plans_and_calls_appear_while_the_agent_works(visit, api, served, ask):
    key = f"helper-{uuid.uuid4().hex[:8]}"
    body = {"id": key, "title": "Helper", "commandKey": "helper", "permissions": "reject", "enabled": True}
    with served.client(served.keys["root"]) as root:
        assert root.post("/api/stored/acp-agents", json=body).status_code == 201
    create_agent(api, key, tools=[f"acp-{key}"])
    visitor = visit()

    page = ask(visitor, key, f"Use acp-{key} {json.dumps({'task': 'linger'})}")

    activities = page.locator("[data-answer] [data-activity]")
    expect(activities).to_have_count(3)
    assert [" ".join(text.split()) for text in activities.all_inner_texts()] == [
        "Thought I should look first.",
        "Plan 2 steps",
        "Tool Looked at a.txt completed",
    ]
    expect(page.locator("[aria-busy]")).to_have_count(1)
    activities.nth(1).locator("summary").press("Enter")
    expect(page.get_by_text("Answer (pending)")).to_be_visible()
    page.reload()
    expect(activities).to_have_count(3)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".answer-end", has_text="Stopped.")).to_be_visible()
    expect(activities).to_have_count(3)
    assert visitor.console == []
    with served.client(served.keys["root"]) as root:
        root.delete(f"/api/stored/acp-agents/{key}")
