"""Requests to a thread that is deleted at the same moment."""

import pytest

from memory_app.history import messages, threads
from memory_app.models import Thread
from runs_app.models import AgentRun
from tests.memory_app.conftest import add_thread
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.mark.parametrize("path", ["generate", "send-message"])
def test_a_call_of_a_thread_that_is_deleted_meanwhile_has_a_new_one(path, caller, editor, agent, monkeypatch):
    old = add_thread(editor, agent=agent, resource=f"u{editor.pk}")
    find, deleted = threads.find_thread, []

    def find_slowly(memory_caller, key, resource):
        thread = find(memory_caller, key, resource)
        if not deleted:
            deleted.append(Thread.objects.filter(pk=old.pk).delete())
        return thread

    monkeypatch.setattr(threads, "find_thread", find_slowly)
    bodies = {"generate": {"messages": "Hello", "memory": {"thread": "t"}}, "send-message": {"message": "Hello"}}

    response = caller.post(f"/api/agents/concierge/{path}", {"threadId": "t", **bodies[path]})

    assert response.status_code == 200, response.body
    assert deleted
    new = Thread.objects.get()
    assert new.pk != old.pk
    assert [*AgentRun.objects.values_list("thread", flat=True)] == [new.pk]
    wait_until(lambda: not AgentRun.objects.unfinished().exists(), 30, "the end of the run")


def test_a_run_whose_thread_is_deleted_while_it_reads_it_remembers_nothing(editor, monkeypatch):
    thread = add_thread(editor, texts=[("user", "One")])
    read = messages.window_rows

    def read_before(*args):
        rows = read(*args)
        Thread.objects.filter(pk=thread.pk).delete()
        return rows

    monkeypatch.setattr(messages, "window_rows", read_before)

    assert messages.load_messages(thread.pk, 10) == []
