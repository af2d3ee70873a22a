"""The memory of an agent in the editor."""

import pytest
from django.urls import reverse

from agents_app.models import Agent
from tests.agents_app.api.test_memory_options import FULL
from tests.factories import AgentFactory
from tests.page_client import editor_form

pytestmark = pytest.mark.django_db


def send(client, agent, **changed):
    return client.post(reverse("agents:edit", args=[agent.pk]), editor_form(agent, publish="yes", **changed))


@pytest.mark.parametrize("memory", [FULL, None, "last-messages", {"options": {"workingMemory": {"enabled": False}}}])
def test_saving_the_page_unchanged_changes_nothing(publisher, memory):
    agent = AgentFactory(memory=memory)

    assert send(publisher, agent).status_code == 302

    assert Agent.objects.get().memory == memory
    assert agent.versions.count() == 1


def test_the_options_come_one_by_one(publisher):
    agent = AgentFactory()
    changed = {
        "memory_kind": "options",
        "memory-options.lastMessages": "5",
        "memory-options.workingMemory": "on",
        "memory-options.workingMemory.scope": "thread",
        "memory-options.workingMemory.template": "# Person\n- Name:",
        "memory-options.semanticRecall": "on",
        "memory-options.generateTitle.minMessages": "3",  # counts only while titles are on
    }

    assert send(publisher, agent, **changed).status_code == 302

    assert Agent.objects.get().memory == {
        "options": {
            "lastMessages": 5,
            "workingMemory": {"scope": "thread", "template": "# Person\n- Name:"},
            "semanticRecall": True,
        }
    }


@pytest.mark.parametrize("part", ["options.workingMemory", "options.generateTitle", "observationalMemory"])
def test_a_part_without_options_of_its_own_is_on(publisher, part):
    memory = {"options": {}}
    parents, _, last = part.rpartition(".")
    (memory[parents] if parents else memory)[last] = {}
    agent = AgentFactory(memory=memory)

    form = publisher.get(reverse("agents:edit", args=[agent.pk])).context["form"]
    send(publisher, agent, **{f"memory-{part}": ""})

    assert [section.switch.name for section in form.memory_sections if section.switch and section.is_on] == [
        f"memory-{part}"
    ]
    assert Agent.objects.get().memory == {"options": {}}


def test_a_changed_option_keeps_members_without_an_input(publisher):
    agent = AgentFactory(memory=FULL)

    send(publisher, agent, **{"memory-options.semanticRecall": "", "memory-observationalMemory.model": "demo/slow"})

    memory = Agent.objects.get().memory
    assert memory["vector"] == "pinecone"
    assert "semanticRecall" not in memory["options"]
    assert memory["options"]["generateTitle"] == FULL["options"]["generateTitle"]
    assert memory["observationalMemory"] == {**FULL["observationalMemory"], "model": "demo/slow"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("options.lastMessages", "-1", "This must be a whole number from 0 to 1,000, or false for no messages."),
        ("options.lastMessages", "{", "This must be a whole number from 0 to 1,000, or false for no messages."),
        ("options.messageHistory.maxTokens", "lots", "whole number"),
        ("options.semanticRecall.topK", "four", "whole number"),
        ("options.semanticRecall.messageRange", "1,5", "whole number"),
        ("options.generateTitle.minMessages", "one", "whole number"),
        ("observationalMemory.observation.bufferTokens", "a fifth", "number"),
        ("observationalMemory.observation.blockAfter", "soon", "number"),
        ("options.workingMemory.schema", "{", "The JSON cannot be read at line 1, column 2"),
        ("options.workingMemory.schema", '{"type": "list"}', "This must be a JSON Schema of the type object."),
    ],
)
def test_a_fault_stands_at_its_input(publisher, name, text, message):
    agent = AgentFactory()
    parts = ("options.workingMemory", "options.semanticRecall", "options.generateTitle", "observationalMemory")
    changed = {"memory_kind": "options", **{f"memory-{part}": "on" for part in parts}, f"memory-{name}": text}

    answer = send(publisher, agent, **changed)

    rows = {row.input.path: row for section in answer.context["form"].memory_sections for row in section.rows}
    assert answer.status_code == 422
    assert message in rows[name].error
    assert rows[name].text == text
    assert Agent.objects.get().memory is None


def test_a_page_of_the_previous_release_keeps_options(publisher):
    agent = AgentFactory(memory=FULL)
    data = editor_form(agent, publish="yes", name="Doorman")
    data = {name: value for name, value in data.items() if not name.startswith(("memory-", "memory_"))}

    publisher.post(reverse("agents:edit", args=[agent.pk]), data)

    assert (Agent.objects.get().name, Agent.objects.get().memory) == ("Doorman", FULL)
