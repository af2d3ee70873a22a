"""The demo tool that works in the background and reports back to the conversation."""

import pytest

from runs_app import agent_tools
from runs_app.models import AgentRun, BackgroundTask, BackgroundTaskDelivery
from tests.factories import AgentFactory, member
from tests.runs import DEMO, chunks, start_run, wait_for_end
from tests.served import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_demo_tool_reports_progress_and_its_result_wakes_the_conversation(tasks, monkeypatch):
    monkeypatch.setattr(agent_tools, "SECONDS_PER_SHELF", 0.01)
    agent = AgentFactory(model=DEMO, tools=["stock-count"], memory="last-messages")

    run = wait_for_end(start_run(agent, member("editor"), "stock-count tea", thread="t1", resource="r1"))
    wait_until(lambda: BackgroundTaskDelivery.objects.exists(), 20)
    woken = wait_for_end(AgentRun.objects.exclude(pk=run.pk).get())

    task = BackgroundTask.objects.get()
    assert task.progress == {"done": 7, "total": 8, "text": "Shelf 8 of 8"}
    assert task.result.endswith("on 8 shelves")
    assert not chunks(woken, "tool-call")
    assert task.result in woken.output
