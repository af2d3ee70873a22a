"""Providers that a superuser changes while a run works."""

import asyncio

import pytest

from agents_app.registry import tool
from runs_app.models import ModelProvider
from runs_app.providers import cached_providers, current_model
from tests.factories import AgentFactory, member
from tests.runs import start_run, wait_for_end
from tests.runs_app.providers.test_truncated_answers import delta

pytestmark = pytest.mark.usefixtures("idle_engine")

CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "change-provider", "arguments": "{}"}}
ANSWERS = (
    [delta({"role": "assistant", "tool_calls": [CALL]}), delta({}, "tool_calls")],
    [delta({"role": "assistant", "content": "Done."}), delta({}, "stop")],
)


@pytest.fixture
def row(event_server):
    row = ModelProvider(
        key="own", title="Own", dialect=ModelProvider.Dialect.COMPATIBLE, base_url=f"{event_server.url}/v1"
    )
    row.set_secret("sk-first-1")
    row.save()
    cached_providers.invalidate()
    event_server.streams["chat/completions"] = iter(ANSWERS)
    return row


@pytest.fixture(params=[True, False], ids=["durable", "not durable"])
def run_with_change(request, row):
    """Return a function that runs an agent whose first step changes the provider."""

    def run(change):
        @tool("change-provider")
        def change_provider() -> str:
            change(ModelProvider.objects.get(pk=row.pk))
            cached_providers.invalidate()
            return "Changed"

        agent = AgentFactory(model={"provider": "own", "name": "local"}, tools=["change-provider"])
        return wait_for_end(start_run(agent, member("editor"), options={"durable": request.param}))

    return run


def test_the_next_step_uses_a_new_key(run_with_change, event_server):
    def change(row):
        row.set_secret("sk-second-2")
        row.save()

    run = run_with_change(change)

    assert (run.output, event_server.keys) == ("Done.", ["sk-first-1", "sk-second-2"])


def test_the_next_step_goes_to_a_new_address(run_with_change, event_server):
    def change(row):
        row.base_url = f"{event_server.url}/moved"
        row.save()

    event_server.streams = {
        "/v1/chat/completions": ANSWERS[0],
        "/moved/chat/completions": ANSWERS[1],
    }

    assert run_with_change(change).output == "Done."


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda row: ModelProvider.objects.filter(pk=row.pk).delete(), "Unknown model provider 'own'. Choose one of "),
        (
            lambda row: (setattr(row, "is_enabled", False), row.save()),
            "Own is disabled. Enable it under Model providers.",
        ),
    ],
    ids=["deleted", "disabled"],
)
def test_no_further_request_goes_to_a_provider_that_is(run_with_change, event_server, change, error):
    run = run_with_change(change)

    assert run.status == "failed"
    assert run.error.startswith(error)
    assert event_server.keys == ["sk-first-1"]


def test_providers_that_were_just_read_are_not_read_again(row, monkeypatch):
    model = current_model.current_model({"provider": "own", "name": "local"})
    reads = []

    async def run_db(function):
        reads.append(function)
        return model.wrapped

    monkeypatch.setattr(current_model, "run_db", run_db)

    assert asyncio.run(model.find_current()) is model.wrapped
    assert reads == []
    cached_providers.invalidate()
    asyncio.run(model.find_current())
    assert len(reads) == 1
