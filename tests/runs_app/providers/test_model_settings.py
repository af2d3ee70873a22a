"""Settings that editors may pass to a provider. A provider may store data of others under the same API key."""

import pytest

from runs_app.building.agent import build_agent
from runs_app.models import ModelProvider
from runs_app.providers import cached_providers
from tests.agentcms.test_settings import manage
from tests.api_client import Caller
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.provider_stub.server import KEY, PROVIDERS
from tests.runs import DEMO, start_run, wait_for_end
from tests.runs_app.admin.test_providers import ADD, FIELDS, errors
from tests.runs_app.providers.test_answer_limits import endless_server  # noqa: F401  a fixture
from tests.runs_app.providers.test_requests import NAMES

MESSAGE = "The model setting '{}' is ignored: its name or value is invalid for this provider."
# Settings that reach what a provider stores, replace what the application sends, or leave its HTTP client.
FORBIDDEN = {
    "googleCachedContent": "cachedContents/1",
    "google_cached_content": "cachedContents/1",
    "googleLabels": {"a": "b"},
    "anthropicContainer": "container_1",
    "anthropicBetas": ["files-api-2025-04-14"],
    "anthropicContextManagement": {"edits": []},
    "openaiPreviousResponseId": "resp_1",
    "openaiConversationId": "conv_1",
    "openaiNativeTools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}],
    "openaiTransport": "websocket",
    "openaiUser": "ada",
    "openaiReasoningEffort": {"effort": "high"},
    "anthropicThinking": {"type": "enabled", "budget_tokens": 1024, "container": "container_1"},
    "googleThinkingConfig": {"thinking_budget": 5, "cached_content": "cachedContents/1"},
    "extraHeaders": {"X-Organization": "other"},
    "timeout": 9,
    "maxRetries": 99,
}
EXTRA_MEMBERS = {
    "container": "container_1",
    "tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}],
    "prompt": {"id": "pmpt_1"},
    "previous_response_id": "resp_1",
    "cachedContent": "cachedContents/1",
    "stream": False,
    "messages": [{"role": "user", "content": "Something else"}],
    "model": "gpt-expensive",
    "min_p": 0.1,
}
ALLOWED = {
    "openai": {"openaiReasoningEffort": "high", "openai_reasoning_summary": "concise", "openaiStore": False},
    "mistral": {"openaiReasoningEffort": "low", "openaiTextVerbosity": "low"},
    "anthropic": {"anthropicThinking": {"type": "enabled", "budget_tokens": 2048}, "anthropicCache": "1h"},
    "google": {"googleThinkingConfig": {"thinking_budget": 5, "include_thoughts": True}},
}


@pytest.fixture
def keys(settings):
    """Configure an API key for every provider."""
    settings.MODEL_KEYS = dict.fromkeys(PROVIDERS, KEY)
    cached_providers.invalidate()


def built(provider, **model):
    return build_agent({"name": "A", "model": {"provider": provider, "name": NAMES.get(provider, "any"), **model}})


def ignored(agent):
    return [(warning.field, warning.key) for warning in agent.warnings]


@pytest.mark.django_db
@pytest.mark.parametrize("provider", PROVIDERS)
def test_other_settings_are_ignored_with_a_warning(provider, keys):
    agent = built(provider, **FORBIDDEN)

    assert ignored(agent) == [("model", name) for name in FORBIDDEN]
    assert [warning.message for warning in agent.warnings] == [MESSAGE.format(name) for name in FORBIDDEN]
    assert not agent.agent.model_settings


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["extraBody", "extra_body"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_member_of_extra_body_is_passed_on(provider, name, keys):
    agent = built(provider, **{name: EXTRA_MEMBERS})

    assert ignored(agent) == [("model", f"{name}.{member}") for member in EXTRA_MEMBERS]
    assert not agent.agent.model_settings


@pytest.mark.django_db
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_settings_of_the_dialect_are_passed_on(provider, keys):
    agent = built(provider, temperature=0.5, thinking="low", **ALLOWED[provider])

    assert ignored(agent) == []
    assert len(agent.agent.model_settings) == 2 + len(ALLOWED[provider])


@pytest.mark.django_db
def test_the_settings_of_another_dialect_are_ignored(keys):
    assert ignored(built("openai", **ALLOWED["google"])) == [("model", "googleThinkingConfig")]
    assert ignored(built("google", **ALLOWED["anthropic"])) == [("model", name) for name in ALLOWED["anthropic"]]
    assert ignored(built("demo", name="echo", **ALLOWED["openai"])) == [("model", name) for name in ALLOWED["openai"]]


@pytest.mark.django_db
def test_nested_settings_are_ignored_too(keys):
    agent = built("google", modelSettings={"temperature": 0.5, "googleCachedContent": "1", "extraBody": {"a": 1}})

    assert ignored(agent) == [("model", "modelSettings.googleCachedContent"), ("model", "modelSettings.extraBody")]
    assert agent.agent.model_settings == {"temperature": 0.5}


@pytest.mark.django_db
def test_the_environment_allows_more_for_a_provider(keys, settings):
    settings.MODEL_ALLOWED_SETTINGS = [
        "google:googleCachedContent",
        "mistral:extraBody.min_p",
        "openai:extraBody.stream",
    ]
    cached_providers.invalidate()

    assert built("google", **FORBIDDEN).agent.model_settings == {"google_cached_content": "cachedContents/1"}
    assert built("mistral", extraBody=EXTRA_MEMBERS).agent.model_settings == {"extra_body": {"min_p": 0.1}}
    assert not built("openai", **FORBIDDEN, extraBody=EXTRA_MEMBERS).agent.model_settings


@pytest.mark.django_db
def test_a_setting_that_the_provider_does_not_have_is_ignored_with_a_warning(keys, settings):
    settings.MODEL_ALLOWED_SETTINGS = ["google:extraBody.min_p"]
    cached_providers.invalidate()

    google = built("google", temperature=0.5, extraBody={"min_p": 0.1})
    openai = built("openai", stopSequences=["."], topK=3)

    assert [warning.message for warning in google.warnings] == [
        "The model setting 'extraBody' is ignored: this provider has no such setting. Remove it."
    ]
    assert google.agent.model_settings == {"temperature": 0.5}
    assert ignored(openai) == [("model", "stopSequences"), ("model", "topK")]


@pytest.mark.django_db
def test_staff_allow_more_for_a_provider(keys):
    house = ModelProvider.objects.create(key="house", title="House", base_url="https://models.example.org/v1")
    assert ignored(built("house", extraBody={"min_p": 0.1})) == [("model", "extraBody.min_p")]

    house.allowed_settings = ["extraBody.min_p", "openaiUser", "extraBody.messages", "extraBody", "timeout", 7]
    house.save()

    settings = built("house", **FORBIDDEN, extraBody=EXTRA_MEMBERS).agent.model_settings
    assert settings == {"extra_body": {"min_p": 0.1}, "openai_user": "ada"}


@pytest.mark.usefixtures("idle_engine")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_request_contains_them(provider, endless_server):  # noqa: F811
    endless_server.repeats = 0
    model = {"provider": provider, "name": NAMES[provider], **FORBIDDEN, "extraBody": EXTRA_MEMBERS}
    options = {"extraBody": EXTRA_MEMBERS, "googleCachedContent": "cachedContents/1", "modelSettings": FORBIDDEN}

    wait_for_end(start_run(AgentFactory(model=model, default_options=options), member("editor"), "Hello"))

    (body,) = endless_server.bodies
    for value in (
        "cachedContents",
        "container_1",
        "vs_1",
        "pmpt_1",
        "resp_1",
        "Something else",
        "gpt-expensive",
        "min_p",
    ):
        assert value not in str(body)
    assert "Hello" in str(body)
    assert endless_server.requests[0]["X-Organization"] is None


@pytest.mark.usefixtures("idle_engine")
def test_a_request_contains_what_staff_allowed(endless_server):  # noqa: F811
    endless_server.repeats = 0
    url = f"http://127.0.0.1:{endless_server.server_port}/v1"
    ModelProvider.objects.create(key="house", title="House", base_url=url, allowed_settings=["extraBody.min_p"])
    agent = AgentFactory(model={"provider": "house", "name": "llama", "extraBody": EXTRA_MEMBERS})

    wait_for_end(start_run(agent, member("editor"), "Hello"))

    (body,) = endless_server.bodies
    assert (body["min_p"], body["model"], body["stream"]) == (0.1, "llama", True)
    assert "container" not in body


@pytest.mark.usefixtures("idle_engine")
def test_default_options_name_what_is_ignored():
    options = {"temperature": 0.5, "extraBody": {"a": 1}, "modelSettings": {"openaiUser": "ada", "topP": 0.5}}

    run = wait_for_end(start_run(AgentFactory(model=DEMO, default_options=options), member("editor")))

    assert [(warning["field"], warning["key"]) for warning in run.warnings] == [
        ("defaultOptions", "extraBody"),
        ("defaultOptions", "modelSettings.openaiUser"),
    ]


@pytest.mark.usefixtures("idle_engine")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"modelSettings": {"extraBody": {"stream": False}}}, "modelSettings.extraBody"),
        ({"modelSettings": {"googleCachedContent": "1"}}, "modelSettings.googleCachedContent"),
        ({"modelSettings": {"anthropic_container": "1"}}, "modelSettings.anthropic_container"),
        ({"extraBody": {}}, "extraBody"),
        ({"openaiPreviousResponseId": "1"}, "openaiPreviousResponseId"),
    ],
)
def test_a_call_cannot_set_them(body, field):
    AgentFactory(id="concierge", model=DEMO)

    answer = Caller(api_key(member("editor"))).post("/api/agents/concierge/generate", {"messages": "Hi", **body})

    assert (answer.status_code, [issue["field"] for issue in answer.body["issues"]]) == (400, [field])
    assert "Omit this" in answer.body["issues"][0]["message"]


# --- Where staff allow settings


@pytest.fixture
def staff(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


@pytest.mark.django_db
def test_superusers_enter_allowed_settings_in_the_admin(staff):
    staff.post(ADD, {**FIELDS, "allowed_settings": "openaiUser\nextraBody.min_p\n"})

    assert ModelProvider.objects.get().allowed_settings == ["openaiUser", "extraBody.min_p"]
    assert cached_providers.get_table().find("house").allowed_settings == {"openai_user", "extra_body.min_p"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ("extraBody", "Name each member of extraBody that is allowed, such as extraBody.min_p."),
        ("extraBody.stream", "'extraBody.stream' cannot be allowed: the application sets it. Remove it."),
        ("extra_body.messages", "'extra_body.messages' cannot be allowed: the application sets it. Remove it."),
        ("openaiTransport", "'openaiTransport' cannot be allowed: the application sets it. Remove it."),
        ("extraHeaders", "'extraHeaders' is not a setting of a provider."),
        ('["openaiUser"]', "is not a setting of a provider. Write names such as googleCachedContent"),
    ],
)
def test_the_admin_refuses_other_names(staff, names, sentence):
    answer = staff.post(ADD, {**FIELDS, "allowed_settings": names})

    assert sentence in str(errors(answer)["allowed_settings"])
    assert not ModelProvider.objects.exists()


def test_invalid_values_of_the_variable_prevent_the_start(tmp_path):
    values = ["googleCachedContent", "google:", "google:timeout", "google:extraBody.model"]

    done = manage(tmp_path, "check", MODEL_ALLOWED_SETTINGS=",".join(values))

    assert done.returncode == 1
    assert [value for value in values if f"MODEL_ALLOWED_SETTINGS contains '{value}'" not in done.stderr] == []
    assert "Traceback" not in done.stderr
