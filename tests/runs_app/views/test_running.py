"""Running agents from pages."""

import contextlib
import json
import logging

import pytest
from django.urls import reverse

from runs_app.exceptions import AgentBuildError
from runs_app.models import AgentRun
from runs_app.resolution import stored_agents
from tests.factories import AgentFactory, member
from tests.page_client import browser
from tests.runs import DEMO, LONG, SLOW, wait_for_end, wait_for_text
from tests.runs_app.views.conftest import page_text

pytestmark = pytest.mark.usefixtures("idle_engine")

MISSING = {
    "tools": ["gone"],
    "workflows": ["gone"],
    "agents": ["gone"],
    "integration_tools": ["gone_tool"],
    "input_processors": [{"key": "gone"}],
    "output_processors": [{"key": "gone"}],
    "memory": "gone",
    "scorers": {"gone": {"sampling": {"type": "ratio", "rate": 1}}},
}


@pytest.fixture
def editor(transactional_db):
    return browser(member("editor"))


def ask(client, agent, message="Hello there"):
    sent = {"message": message, "column": "live", "run": ""}
    return client.post(reverse("runs:run", args=[agent.pk]), sent).headers["Location"]


def blocks(answer):
    """Return numbers and data of the events of a stream."""
    text = b"".join(answer.streaming_content).decode()
    lines = [block.split("\n") for block in text.split("\n\n") if "data: {" in block]
    return [(int(number.removeprefix("id: ")), json.loads(data.removeprefix("data: "))) for number, data in lines]


def test_a_message_is_answered_on_the_playground(editor):
    address = ask(editor, AgentFactory(model=DEMO))

    run = wait_for_end(AgentRun.objects.get())

    text = page_text(editor.get(address))
    assert run.status == "succeeded"
    assert "You said: Hello there" in text
    assert "Still running" not in text


@pytest.mark.parametrize("field", MISSING)
def test_missing_entries_are_warnings_before_and_after_the_run(editor, field, caplog):
    agent = AgentFactory(model=DEMO, **{field: MISSING[field]})
    before = page_text(editor.get(reverse("runs:playground", args=[agent.pk])))

    with caplog.at_level(logging.WARNING, "runs_app"):
        ask(editor, agent)
        run = wait_for_end(AgentRun.objects.get())

    after = page_text(editor.get(reverse("runs:view", args=[run.pk])))
    assert (before.count("The agent runs without it."), after.count("The agent ran without it.")) == (1, 1)
    assert "You said: Hello there" in after
    assert len([record for record in caplog.records if "gone" in record.getMessage()]) == 1


def test_of_many_warnings_a_page_shows_a_few_and_their_number(editor):
    agent = AgentFactory(model=DEMO, tools=[f"gone-{number}" for number in range(1000)])

    before = page_text(editor.get(reverse("runs:playground", args=[agent.pk])))
    ask(editor, agent)
    run = wait_for_end(AgentRun.objects.get())
    after = page_text(editor.get(reverse("runs:view", args=[run.pk])))

    for text in (before, after):
        assert text.count("No tool is registered as") == 20
        assert "These are 20 of 1,000 warnings." in text


def test_the_page_stream_continues_after_the_last_event(editor):
    ask(editor, AgentFactory(model=DEMO))
    run = wait_for_end(AgentRun.objects.get())
    address = reverse("runs:stream", args=[run.pk])

    whole = blocks(editor.get(address))
    middle = whole[len(whole) // 2][0]
    by_address = blocks(editor.get(f"{address}?after={middle}"))
    by_header = blocks(editor.get(f"{address}?after=1", headers={"Last-Event-ID": str(middle)}))

    assert [number for number, _ in whole] == list(range(1, run.last_event_number + 1))
    assert by_address == by_header == whole[middle:]
    with contextlib.closing(editor.get(address)) as answer:  # otherwise the stream keeps its place
        assert answer.headers["Content-Type"] == "text/event-stream"


@pytest.mark.parametrize(("setting", "status"), [("RUN_STREAMS", 503), ("RUN_STREAMS_PER_USER", 429)])
def test_a_full_server_names_the_seconds_to_wait(setting, status, editor, settings):
    setattr(settings, setting, 1)
    ask(editor, AgentFactory(model=DEMO))
    address = reverse("runs:stream", args=[wait_for_end(AgentRun.objects.get()).pk])
    first = editor.get(address)

    second = editor.get(address)

    assert second.status_code == status
    assert int(second.headers["Retry-After"]) > 0
    first.close()
    assert blocks(editor.get(address))


def test_a_run_is_cancelled_from_its_page(editor):
    ask(editor, AgentFactory(model=SLOW), LONG)
    run = wait_for_text(AgentRun.objects.get())

    answer = editor.post(reverse("runs:stop", args=[run.pk]))

    assert wait_for_end(run).status == "cancelled"
    assert "Stopped." in page_text(editor.get(answer.headers["Location"]))


def test_a_sub_run_is_linked_on_the_page(editor):
    ask(editor, AgentFactory(model=DEMO, agents=["proofreader"]), "Ask the proofreader: Is this rigth?")
    run = wait_for_end(AgentRun.objects.get(parent=None))

    text = page_text(editor.get(reverse("runs:view", args=[run.pk])))

    assert "Sub-agent runs proofreader code Succeeded" in text
    assert "sub-agent proofreader" in text
    child = page_text(editor.get(reverse("runs:view", args=[run.children.get().pk])))
    assert "Run of Proofreader" in child
    assert "You said: Is this rigth?" in child


def test_the_label_of_the_demo_fallback_stays_on_the_page(editor, settings):
    settings.MODEL_KEYS = {}
    agent = AgentFactory(model={"provider": "openai", "name": "gpt-6-luna"})

    ask(editor, agent)

    assert "I am the demo model" in wait_for_end(AgentRun.objects.get()).output
    with pytest.raises(AgentBuildError, match="OPENAI_API_KEY"):
        stored_agents.get(agent.pk).build()
