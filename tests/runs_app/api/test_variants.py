"""Variants of an agent by tier: facts of the credentials against claims of the caller."""

import pytest

from access_app.models import ApiKey
from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")

OWNER = "support"
AT = "/api/agents/concierge/generate"
STORY = {"provider": "demo", "name": "storyteller", "delay": 0}


def tier(name, operator="equals"):
    return {"operator": "AND", "conditions": [{"field": "tier", "operator": operator, "value": name}]}


BY_TIER = {
    "model": [{"value": STORY, "rules": tier("enterprise")}],
    "tools": [{"value": ["add"], "rules": tier(["pro", "enterprise"], "in")}],
    "memory": [
        {"value": "last-messages", "rules": {"operator": "OR", "conditions": [tier("pro"), tier("enterprise")]}}
    ],
}


@pytest.fixture
def editor():
    return member("editor", OWNER)


@pytest.fixture
def agent():
    return AgentFactory(
        id="concierge", owner_id=OWNER, model=DEMO, conditional=BY_TIER, instructions="For {{tier || 'all'}}."
    )


def caller_with(editor, **context):
    _, token = ApiKey.objects.issue(editor, context=context or None)
    return Caller(token)


def ask(caller, claims=None, **headers):
    body = {"messages": "Hello", **({"requestContext": claims} if claims else {})}
    return caller.post(AT, body, **headers)


def last_run():
    return AgentRun.objects.order_by("created_at").last()


@pytest.mark.parametrize(
    ("context", "model", "variants"),
    [
        ({}, "echo", None),
        ({"tier": "pro"}, "echo", {"memory": 0, "tools": 0}),
        ({"tier": "enterprise"}, "storyteller", {"memory": 0, "model": 0, "tools": 0}),
    ],
)
def test_the_tier_of_the_key_chooses_model_memory_and_tools(editor, agent, context, model, variants):
    answer = ask(caller_with(editor, **context))

    assert f"the demo model '{model}'" in answer.body["text"]
    run = last_run()
    assert run.input.get("variants") == variants
    assert run.configuration["tools"] == (["add"] if variants else [])
    assert run.facts == {**context, "userId": f"u{editor.pk}", "roles": ["editor"], "owner": OWNER}
    assert run.filled_instructions == f"For {context.get('tier', 'all')}."


def test_facts_of_the_key_win_over_claims_of_the_caller(editor, agent):
    assert "echo" in ask(caller_with(editor), {"tier": "enterprise"}).body["text"]
    agent.edit({"context_keys": ["tier"]})

    assert "storyteller" in ask(caller_with(editor), {"tier": "enterprise"}).body["text"]
    assert "echo" in ask(caller_with(editor, tier="free"), {"tier": "enterprise"}).body["text"]
    assert last_run().filled_instructions == "For free."
    agent.edit({"instructions": "For {{tier.name}}."})
    ask(caller_with(editor, tier={"name": "free"}), {"tier.name": "enterprise"})
    assert last_run().filled_instructions == "For free."


def test_a_replay_returns_the_run_and_another_variant_is_refused(editor, agent):
    caller = caller_with(editor, tier="pro")
    first = ask(caller, Idempotency_Key="k1")

    assert ask(caller, Idempotency_Key="k1").body["runId"] == first.body["runId"]
    refused = ask(caller_with(editor, tier="enterprise"), Idempotency_Key="k1")

    assert (refused.status_code, refused.body["code"]) == (422, "key_reused")
    assert AgentRun.objects.count() == 1


def test_a_replay_with_other_facts_and_the_same_variant_returns_the_run(editor, agent):
    first = ask(caller_with(editor, tier="basic"), Idempotency_Key="k1")

    again = ask(caller_with(editor, tier="free"), Idempotency_Key="k1")

    assert again.body["runId"] == first.body["runId"]


def test_built_agents_are_not_mixed_up(editor, agent):
    tiers = ["pro", "enterprise", "free", "enterprise", "pro"]

    models = ["storyteller" in ask(caller_with(editor, tier=name)).body["text"] for name in tiers]

    assert models == [False, True, False, True, False]


def test_a_run_that_a_signal_wakes_has_the_variants_of_the_sender(editor, agent):
    body = {"threadId": "t", "resourceId": "alice", "message": "Hello"}

    sent = caller_with(editor, tier="enterprise").post("/api/agents/concierge/send-message", body)

    done = wait_for_end(AgentRun.objects.get(pk=sent.body["runId"]))
    assert "storyteller" in done.output
    assert done.facts["tier"] == "enterprise"


def test_the_fields_are_stored_with_the_version(editor):
    manager = Caller(api_key(member("manager", OWNER)))
    body = {"ownerId": OWNER, "conditional": BY_TIER, "contextKeys": ["locale"]}

    created = manager.create(**body)

    assert created.status_code == 201
    agent = manager.get("/api/stored/agents/concierge").body
    assert (agent["conditional"], agent["contextKeys"]) == (BY_TIER, ["locale"])


DEEP = {"operator": "AND", "conditions": [{"field": "a", "operator": "exists"}]}
for _ in range(3):
    DEEP = {"operator": "OR", "conditions": [DEEP]}


AT_MODEL = "conditional.model[0]."


@pytest.mark.parametrize(
    ("conditional", "field", "words"),
    [
        (
            {"model": [{"value": {"provider": "demo"}, "rules": tier("x")}]},
            "conditional.model[0].value.name",
            "required",
        ),
        ({"model": [{"value": DEMO, "rules": {}}]}, AT_MODEL + "rules", "AND or OR"),
        (
            {"model": [{"value": DEMO, "rules": tier("x", "like")}]},
            AT_MODEL + "rules",
            "conditions[0].operator",
        ),
        ({"model": [{"value": DEMO, "rules": tier("x", "in")}]}, AT_MODEL + "rules", "needs a list"),
        ({"tools": [{"value": "add", "rules": tier("x")}]}, "conditional.tools[0].value", "list"),
        ({"memory": [{"value": "m", "rules": DEEP}]}, "conditional.memory[0].rules", "at most 3 deep"),
        ({"agents": []}, "conditional.agents", ""),
    ],
)
def test_bad_variants_are_refused_with_the_path(conditional, field, words):
    manager = Caller(api_key(member("manager", OWNER)))

    refused = manager.create(ownerId=OWNER, conditional=conditional)

    assert refused.status_code == 400
    (issue,) = refused.body["issues"]
    assert issue["field"].startswith(field)
    assert words in issue["message"]
