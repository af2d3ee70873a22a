"""Activities of ACP agents while an answer streams, as the page of a run shows them afterwards."""

from playwright.sync_api import expect

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
