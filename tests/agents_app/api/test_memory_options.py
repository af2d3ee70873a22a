"""The memory of an agent as an object of options."""

import pytest

from agents_app.configuration.display import config_sections
from agents_app.configuration.memory.options import parse_memory_options
from agents_app.models import Agent
from tests.agent_exchange import export, import_file
from tests.api_client import Caller, agent_path
from tests.factories import api_key, member
from tests.migrated import migrate_to, new_database
from versions_app.compare.change_summary import summarize_changes, summary_line

pytestmark = pytest.mark.django_db

AGENT = agent_path()
FULL = {
    "options": {
        "lastMessages": 10,
        "messageHistory": {"maxTokens": 8000},
        "readOnly": False,
        "generateTitle": {"minMessages": 1, "model": "demo/echo", "instructions": "Be short."},
        "semanticRecall": {"topK": 4, "messageRange": {"before": 1, "after": 2}, "scope": "resource"},
        "workingMemory": {"enabled": True, "scope": "thread", "template": "# Person"},
    },
    "embedder": "local/multilingual",
    "vector": "pinecone",
    "observationalMemory": {
        "model": {"provider": "demo", "name": "echo", "delay": 0},
        "observation": {"messageTokens": 30000, "bufferTokens": 0.2, "bufferActivation": 0.8, "blockAfter": 1.2},
        "reflection": {"observationTokens": 40000},
    },
}


@pytest.fixture
def caller():
    return Caller(api_key(member("publisher")))


@pytest.mark.parametrize("memory", [FULL, {"options": {}}, {"options": {"generateTitle": True}}, "last-messages"])
def test_it_is_stored_versioned_exported_and_read_unchanged(caller, memory):
    assert caller.create(memory=memory).status_code == 201
    caller.patch(AGENT, {"memory": None})
    caller.patch(AGENT, {"memory": memory})

    assert caller.get(AGENT).body["memory"] == memory
    assert Agent.objects.get().memory == memory
    assert caller.get(f"{AGENT}/versions").body["versions"][0]["snapshot"]["memory"] == memory
    content, _ = export(caller)
    Agent.objects.all().delete()
    import_file(caller, content)
    assert Agent.objects.get().memory == memory


INVALID = {
    "options": ({"options": 7}, "This must be an object."),
    "options.lastMessages": ({"options": {"lastMessages": -1}}, "This must be a whole number from 0 to 1,000, or"),
    "options.messageHistory.maxTokens": ({"options": {"messageHistory": {"maxTokens": 0}}}, "greater than or equal"),
    "options.readOnly": ({"options": {"readOnly": "yes"}}, "This must be true or false."),
    "options.generateTitle": ({"options": {"generateTitle": "yes"}}, "This must be true, false or an object."),
    "options.generateTitle.model": ({"options": {"generateTitle": {"model": "echo"}}}, 'as "provider/name"'),
    "options.semanticRecall.topK": ({"options": {"semanticRecall": {"topK": 0}}}, "greater than or equal to 1"),
    "options.semanticRecall.messageRange": ({"options": {"semanticRecall": {"messageRange": 11}}}, "from 0 to 10"),
    "options.semanticRecall.scope": ({"options": {"semanticRecall": {"scope": "world"}}}, "resource"),
    "options.workingMemory": (
        {"options": {"workingMemory": {"template": "# A", "schema": {"type": "object"}}}},
        "Give a template or a schema, not both.",
    ),
    "options.workingMemory.schema": ({"options": {"workingMemory": {"schema": {"type": "list"}}}}, "type object"),
    "observationalMemory.observation.blockAfter": (
        {"observationalMemory": {"observation": {"blockAfter": 0.5}}},
        "greater than or equal to 1",
    ),
}


@pytest.mark.parametrize("path", INVALID)
def test_an_invalid_option_is_refused_with_its_path(caller, path):
    memory, message = INVALID[path]

    answer = caller.create(memory=memory)

    (issue,) = answer.body["issues"]
    assert (answer.status_code, issue["field"]) == (400, f"memory.{path}")
    assert message in issue["message"]
    assert not Agent.objects.exists()


def test_true_means_the_defaults():
    memory = parse_memory_options({"options": {"semanticRecall": True, "workingMemory": True, "generateTitle": True}})

    assert (memory.max_messages, memory.max_tokens) == (10, 8000)
    assert (memory.recall.top_k, memory.recall.neighbours, memory.recall.scope) == (4, (1, 1), "resource")
    assert (memory.working.scope, memory.title.min_messages, memory.observational) == ("resource", 1, None)


def test_names_that_nothing_reads_and_missing_models_are_warnings(caller):
    memory = {
        "options": {"lastMesages": 3, "generateTitle": {"model": "nobody/x"}, "observationalMemory": True},
        "observationalMemory": {"scope": "resource"},
        "vector": {"provider": "pinecone"},
    }

    warnings = caller.create(memory=memory).body["warnings"]

    assert {(warning["field"], warning["message"]) for warning in warnings} == {
        ("memory.options.lastMesages", "This name is unknown. Did you mean lastMessages?"),
        (
            "memory.options.observationalMemory",
            "Observations belong next to 'options'. Send memory.observationalMemory instead.",
        ),
        ("memory.observationalMemory.scope", "Observations are made by thread. The scope 'resource' has no effect."),
        ("memory.vector", "Vectors are in the database of this application. 'vector' has no effect."),
        ("memory.model", "No model provider is registered as 'nobody'."),
    }


@pytest.mark.parametrize("embedder", ["local/nope", "text-embedding-3-small"])
def test_an_unknown_embedder_is_a_warning_and_an_error_of_strict_requests(caller, embedder):
    memory = {"options": {"semanticRecall": True}, "embedder": embedder}

    (warning,) = caller.create(memory=memory).body["warnings"]
    strict = caller.patch(f"{AGENT}?strict=true", {"memory": memory})

    assert (warning["field"], warning["message"].partition(". ")[0]) == (
        "memory.embedder",
        f"Unknown embedder '{embedder}'",
    )
    assert (strict.status_code, [issue["field"] for issue in strict.body["issues"]]) == (400, ["memory.embedder"])


@pytest.mark.parametrize("embedder", ["local/multilingual", "openai/text-embedding-3-small", None])
def test_a_usable_embedder_is_no_warning(caller, embedder):
    memory = {"options": {"semanticRecall": True}, "embedder": embedder}

    assert caller.create(memory=memory).body["warnings"] == []


def test_pages_compare_options_by_path():
    changed = {**FULL, "options": {**FULL["options"], "lastMessages": 5}}
    (section,) = config_sections({"memory": FULL})

    assert (
        summary_line(summarize_changes({"memory": FULL}, {"memory": changed})) == "Memory options.lastMessages 10 → 5"
    )
    assert (
        summary_line(summarize_changes({"memory": "last-messages"}, {"memory": FULL}))
        == "Memory last-messages → options of this agent"
    )
    assert ("workingMemory.scope", "thread") in section.value


def test_a_comparison_names_each_path(caller):
    first = caller.create(memory=FULL).body["resolvedVersionId"]
    changed = {**FULL, "options": {**FULL["options"], "semanticRecall": False}}
    second = caller.patch(AGENT, {"memory": changed}).body["resolvedVersionId"]

    answer = caller.get(f"{AGENT}/versions/compare?from={first}&to={second}")

    assert "memory.options.semanticRecall" in [detail["path"] for detail in answer.body["details"]]


@pytest.mark.django_db(transaction=True)
def test_the_migration_copies_keys_forwards_and_backwards():
    with new_database():
        agents = migrate_to(("agents_app", "0015_fill_memory_choice")).get_model("agents_app", "Agent").objects
        for key, memory in (("keys", 'say "hi"'), ("none", None), ("options", FULL)):
            agents.create(pk=key, model={}, memory=memory)
        before = migrate_to(("agents_app", "0013_mcp_clients_of_agents"))
        assert memory_by_agent(before) == {"keys": 'say "hi"', "none": None, "options": None}
        after = migrate_to(("agents_app", "0015_fill_memory_choice"))
        assert memory_by_agent(after) == {"keys": 'say "hi"', "none": None, "options": None}


def memory_by_agent(models):
    return dict(models.get_model("agents_app", "Agent").objects.values_list("pk", "memory"))
