"""References in variants: warnings of the API and of pages, unknown names, and the agents that use an ACP agent."""

from html import unescape
from importlib import import_module

from django.db import connection, models
from django.db.migrations.loader import MigrationLoader
from django.urls import reverse

from runs_app.models import ModelProvider
from tests.api_client import MODEL, agent_path
from tests.factories import AgentFactory, UserFactory
from tests.page_client import browser
from tools_app.acp.used_by import find_agents_using_acp_agent
from tools_app.models import AcpAgent
from versions_app.models import AgentVersion

RULES = {"operator": "AND", "conditions": [{"field": "tier", "operator": "exists"}]}
OBSERVED = {"embedder": "far/embedder", "observationalMemory": {"model": {"provider": "lost", "name": "m"}}}


def variants(*values):
    return [{"value": value, "rules": RULES} for value in values]


CONDITIONAL = {
    "model": variants(MODEL, {"provider": "house", "name": "m"}),
    "tools": variants(["calculator", "gone"], ["gone", "acp-worker"]),
    "memory": variants("forgotten", OBSERVED),
}
MISSING = {
    "house": ("conditional.model", "conditional.model[1].value.provider"),
    "gone": ("conditional.tools", "conditional.tools[0].value[1]"),
    "acp-worker": ("conditional.tools", "conditional.tools[1].value[1]"),
    "forgotten": ("conditional.memory", "conditional.memory[0].value"),
    "far": ("conditional.memory.model", "conditional.memory[1].value.embedder"),
    "lost": ("conditional.memory.model", "conditional.memory[1].value.observationalMemory.model"),
}


def warned(answer):
    return [(item["key"], item["field"]) for item in answer.body["warnings"]]


def test_what_a_variant_names_and_nothing_registers_is_a_warning(api):
    created = api.create(conditional=CONDITIONAL)

    assert sorted(warned(created)) == sorted((key, field) for key, (field, _) in MISSING.items())
    assert sorted(warned(api.get(agent_path()))) == sorted(warned(created))
    messages = [item["message"] for item in created.body["warnings"] if item["field"] == "conditional.tools"]
    assert messages == ["No tool is registered as 'gone'.", "No tool is registered as 'acp-worker'."]


def test_strict_refuses_it_with_its_path(api):
    api.create()

    refused = api.patch(f"{agent_path()}?strict=true", {"conditional": CONDITIONAL})

    assert (refused.status_code, {issue["field"] for issue in refused.body["issues"]}) == (
        400,
        {path for _, path in MISSING.values()},
    )
    assert api.get(agent_path()).body["headVersionNumber"] == 1


def test_what_staff_add_later_is_not_missing(api):
    provider = {"provider": "annex", "name": "m"}
    created = api.create(conditional={"model": variants(provider), "memory": variants({"embedder": "annex/m"})})

    ModelProvider.objects.create(key="annex", title="Annex", dialect="openai")

    assert warned(created) == [("annex", "conditional.memory.model"), ("annex", "conditional.model")]
    assert warned(api.patch(agent_path(), {"description": "New"})) == []


def test_an_unknown_setting_of_a_variant_is_a_warning(api):
    model = {**MODEL, "temprature": 1}
    body = {"model": model, "conditional": {"model": variants(MODEL, model)}}

    created = api.create(**body)
    refused = api.patch(f"{agent_path()}?strict=true", body)

    paths = ["model.temprature", "conditional.model[1].value.temprature"]
    assert [field for _, field in warned(created)] == paths
    assert [issue["field"] for issue in refused.body["issues"]] == paths


def test_pages_say_what_is_missing_and_what_that_means():
    # Without the memories: a page shows three of the missing entries.
    agent = AgentFactory(conditional={name: CONDITIONAL[name] for name in ("model", "tools")})
    client = browser(UserFactory(is_superuser=True))

    pages = {
        name: unescape(client.get(url).content.decode())
        for name, url in (
            ("editor", reverse("agents:edit", args=[agent.pk])),
            ("version", reverse("versions:view", args=[agent.pk, 1])),
        )
    }

    for page in pages.values():
        assert "No tool is registered as 'gone'. The agent runs without it." in page
        assert (
            "No model provider is registered as 'house'. The callers of a variant get no answer. "
            "Choose another model for the variant."
        ) in page


def test_the_list_counts_references_of_variants_as_broken():
    AgentFactory(id="whole", name="Whole")
    AgentFactory(id="broken", name="Broken", conditional=CONDITIONAL)
    client = browser(UserFactory(is_superuser=True))

    listed = client.get(reverse("agents:list"), {"status": "broken"}).content.decode()

    links = [reverse("agents:edit", args=[agent_id]) for agent_id in ("broken", "whole")]
    assert [link in listed for link in links] == [True, False]


def test_an_acp_agent_names_the_agents_that_have_it_as_a_tool_of_a_variant():
    AgentFactory(id="other")
    AgentFactory(id="helper", conditional={"tools": variants(["acp-worker"])})
    AgentFactory(id="similar", conditional={"tools": variants(["acp-worker-2"])})

    users = find_agents_using_acp_agent(AcpAgent.objects.create(key="worker", title="Worker", command_key="none"))

    assert [agent.pk for agent in users] == ["helper"]


def test_the_migration_adds_them_to_the_references_of_stored_versions():
    AgentFactory(id="plain", tools=["calculator"])
    AgentFactory(id="varied", tools=["calculator"], conditional=CONDITIONAL)
    AgentFactory(id="off", conditional={"memory": variants({"observationalMemory": {**OBSERVED, "enabled": False}})})
    expected = dict(AgentVersion.objects.values_list("agent_id", "references"))
    for version in AgentVersion.objects.all():
        own = {field: keys for field, keys in version.references.items() if not field.startswith("conditional.")}
        models.QuerySet.update(AgentVersion.objects.filter(pk=version.pk), references=own)

    migration = import_module("versions_app.migrations.0013_references_of_variants")
    state = MigrationLoader(connection).project_state(("versions_app", "0012_one_index_of_authors"))
    migration.add_references(state.apps, connection.schema_editor(atomic=False))

    assert {field for field in expected["varied"] if field.startswith("conditional.")} == {
        field for field, _ in MISSING.values()
    }
    assert dict(AgentVersion.objects.values_list("agent_id", "references")) == expected
