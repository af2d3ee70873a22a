"""Requests to providers and their responses, against a stub server."""

import asyncio

import pytest
from pydantic_ai import ModelAPIError, ModelHTTPError, ModelRateLimitError, PartDeltaEvent, PartStartEvent

from agentcms.outbound.addresses import AddressRefused
from agents_app.models import Agent
from runs_app.models import ModelProvider
from runs_app.providers import cached_providers
from runs_app.requests.options import model_settings
from runs_app.resolution import stored_agents
from tests.factories import AgentFactory
from tests.provider_stub.server import HERE, KEY, PROVIDERS
from tests.runs_app.conftest import answer, running

pytestmark = pytest.mark.django_db

NAMES = {
    "openai": "gpt-4.1",
    "anthropic": "claude-haiku-4-5",
    "google": "gemini-3.8-flash",
    "mistral": "mistral-small-latest",
}
PATHS = {
    "openai": "/v1/responses",
    "anthropic": "/v1/messages",
    "google": "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
    "mistral": "/v1/chat/completions",
}
NO_RETRY = {"max_retries": 0}


def stored(provider: str, **fields) -> Agent:
    model = {"provider": provider, "name": NAMES.get(provider, "any"), "temperature": 0.25}
    return AgentFactory(id=f"of-{provider}", model=model, **fields)


def answer_text(built, text, settings=NO_RETRY):
    options = {**model_settings(built.options), **settings}
    return asyncio.run(answer(built, text, settings=options))


def contents(body, role):
    """Return the contents of the messages of one role."""
    return [message["content"] for message in body["messages"] if message["role"] == role]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_provider_gets_requests_at_its_own_url(provider, provider_stub):
    stored(provider)

    result = answer_text(stored_agents.get(f"of-{provider}").build(), "Hello")

    assert result.output == "Good evening to you, dear guest."
    assert [request["path"] for request in provider_stub.received_requests()] == [PATHS[provider]]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_request_contains_the_configuration_of_the_version(provider, provider_stub):
    agent = stored(provider, instructions="Greet guests.", tools=["word-count"], default_options={"maxTokens": 77})
    agent.edit({"instructions": "Greet guests by name.", "tools": [], "default_options": {}})

    answer_text(stored_agents.get(agent.pk, version_number=1).build(), "Hello")
    answer_text(stored_agents.get(agent.pk).build(), "Hello")

    first, second = [request["body"] for request in provider_stub.received_requests()]
    assert first["model"] == second["model"] == NAMES[provider]
    assert (contents(first, "system"), contents(second, "system")) == (["Greet guests."], ["Greet guests by name."])
    assert contents(first, "user") == ["Hello"]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["word-count"]
    assert not second.get("tools")
    assert first.get("max_tokens") == 77 != second.get("max_tokens")
    if provider != "openai":  # the stub server does not report it for this API
        assert first["temperature"] == 0.25


@pytest.mark.parametrize("provider", PROVIDERS)
def test_answers_are_streamed(provider, provider_stub):
    stored(provider)
    built = stored_agents.get(f"of-{provider}").build()

    async def pieces():
        async with built.agent.run_stream_events("Hello", deps=running()) as events:
            return [event async for event in events if isinstance(event, PartStartEvent | PartDeltaEvent)]

    assert len(asyncio.run(pieces())) >= 4


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tools_are_called_and_their_results_sent_back(provider, provider_stub):
    stored(provider, tools=["word-count"])

    result = answer_text(stored_agents.get(f"of-{provider}").build(), "How many words?")

    assert result.output == "Three words."
    _, second = [request["body"] for request in provider_stub.received_requests()]
    (came,) = contents(second, "tool")
    assert "3" in str(came)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_rate_limited_request_fails_with_a_message(provider, provider_stub):
    stored(provider)

    with pytest.raises(ModelRateLimitError, match=r"Slow down\.") as refused:
        answer_text(stored_agents.get(f"of-{provider}").build(), "You are asked too often")

    assert KEY not in str(refused.value) + repr(refused.value)


def test_a_rate_limited_request_is_retried(provider_stub):
    stored("openai")

    with pytest.raises(ModelRateLimitError):
        answer_text(stored_agents.get("of-openai").build(), "You are asked too often", settings={})

    assert len(provider_stub.received_requests()) == 3


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_error_fails_with_a_message(provider, provider_stub):
    stored(provider)

    with pytest.raises(ModelHTTPError, match="The kitchen is on fire") as refused:
        answer_text(stored_agents.get(f"of-{provider}").build(), "You are broken")

    assert refused.value.status_code == 500


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_broken_response_fails(provider, provider_stub):
    stored(provider)

    with pytest.raises(ModelAPIError):
        answer_text(stored_agents.get(f"of-{provider}").build(), "Please hang up")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_slow_response_can_be_cancelled(provider, provider_stub):
    stored(provider)
    built = stored_agents.get(f"of-{provider}").build()

    async def impatient():
        async with asyncio.timeout(1):
            await answer(built, "Speak slowly")

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())


def test_a_key_is_sent_to_its_provider_only(provider_stub, settings):
    settings.MODEL_KEYS = {"openai": "sk-of-openai", "anthropic": "sk-of-anthropic", "google": "sk-of-google"}
    cached_providers.invalidate()
    for provider in ("openai", "anthropic", "google"):
        stored(provider)
        answer_text(stored_agents.get(f"of-{provider}").build(), "Hello")

    headers = [request["headers"] for request in provider_stub.received_requests()]

    assert ["x-goog-api-key" in header for header in headers] == [False, False, True]
    assert "sk-of" not in str([request["body"] for request in provider_stub.received_requests()])


# --- Servers of one's own


@pytest.fixture
def custom_provider(provider_stub):
    """Store a provider with an OpenAI-compatible server and without a key."""
    return ModelProvider.objects.create(
        key="house", title="House", base_url=f"{provider_stub.url}/v1", aliases=["local"]
    )


def test_a_custom_server_gets_the_request(custom_provider, provider_stub):
    stored("local")

    result = answer_text(stored_agents.get("of-local").build(), "Hello")

    assert result.output == "Good evening to you, dear guest."
    assert [request["path"] for request in provider_stub.received_requests()] == ["/v1/chat/completions"]


def test_a_custom_server_gets_chat_completion_requests(custom_provider, provider_stub):
    stored("house", tools=["word-count"], default_options={"maxTokens": 5})

    answer_text(stored_agents.get("of-house").build(), "Hello")

    (request,) = provider_stub.received_requests()
    assert request["body"]["max_tokens"] == 5
    assert "max_completion_tokens" not in request["body"]
    assert "strict" not in request["body"]["tools"][0]["function"]


def test_nothing_is_sent_to_a_private_address(custom_provider, provider_stub, settings):
    stored("house")
    settings.OUTBOUND_NETWORKS = []

    with pytest.raises(AddressRefused, match="Add its network to OUTBOUND_NETWORKS"):
        stored_agents.get("of-house").build()


def test_nothing_is_sent_to_a_name_with_a_private_address(custom_provider, provider_stub, settings):
    custom_provider.base_url = custom_provider.base_url.replace("127.0.0.1", "localhost")
    custom_provider.save()
    stored("house")
    settings.OUTBOUND_NETWORKS = []

    with pytest.raises(AddressRefused, match="'localhost' is not allowed"):
        answer_text(stored_agents.get("of-house").build(), "Hello")

    assert provider_stub.received_requests() == []


def test_an_unreachable_server_is_a_model_error(custom_provider):
    custom_provider.base_url = "http://127.0.0.1:9/v1"
    custom_provider.save()
    stored("house")

    with pytest.raises(ModelAPIError):
        answer_text(stored_agents.get("of-house").build(), "Hello")


def test_the_lock_file_names_no_registry():
    lock = (HERE / "package-lock.json").read_text()

    assert "resolved" not in lock
    assert "://registry" not in lock
