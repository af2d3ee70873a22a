"""No text of a run leaves the process in a span, unless the operator and the owner allow it."""

import pytest

from agentcms.tracing import exporting
from agents_app.registry import Entry, Kind, registry, tool
from runs_app.models import TraceRule
from tests.factories import AgentFactory, member
from tests.runs import DEMO, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")
MARKER = "Xylophone7391"


@pytest.fixture
def agent():
    """Return an agent with texts in every place: instructions, tools, arguments, results and errors."""
    tool(key="tell-secret", description=f"Tell {MARKER}.")(tell_secret)
    tool(key="lose-secret", description=f"Lose {MARKER}.")(lose_secret)
    return AgentFactory(
        model=DEMO,
        instructions=f"Keep {MARKER}.",
        description=f"Knows {MARKER}.",
        tools=["tell-secret", "lose-secret"],
    )


def tell_secret(text: str) -> str:
    return f"{MARKER} and {text}"


def lose_secret(text: str) -> str:
    raise ValueError(f"{MARKER} is lost")


def failing_model(name, settings):
    from pydantic_ai.models.function import FunctionModel

    def answer(messages, info):
        raise RuntimeError(f"The provider quotes {MARKER}.")

    async def stream(messages, info):
        raise RuntimeError(f"The provider quotes {MARKER}.")
        yield ""

    return FunctionModel(answer, stream_function=stream)


def run_agent(agent):
    return wait_for_end(start_run(agent, member("editor"), f"Use tell-secret and lose-secret for {MARKER}"))


def received(collector):
    return b"".join(collector.bodies)


def test_no_text_is_exported(agent, flushed):
    run_agent(agent)

    collector = flushed()
    assert len(collector.named("execute_tool tell-secret")) == 1
    assert collector.named("execute_tool lose-secret")[0].status.code == 2  # an error
    assert MARKER.encode() not in received(collector)
    assert b"gen_ai.tool.definitions" not in received(collector)


def test_messages_are_not_converted_for_spans_without_texts(agent, flushed, monkeypatch):
    ended = []
    export = exporting.CountingExporter.export
    monkeypatch.setattr(
        exporting.CountingExporter, "export", lambda exporter, spans: ended.extend(spans) or export(exporter, spans)
    )
    run_agent(agent)

    flushed()
    attributes = {name: value for span in ended if span.name == "chat echo" for name, value in span.attributes.items()}
    assert attributes["gen_ai.usage.input_tokens"] > 0
    assert {"gen_ai.input.messages", "gen_ai.output.messages"}.isdisjoint(attributes)


def test_no_text_of_a_failed_provider_is_exported(flushed):
    registry.add(Entry(Kind.MODEL_PROVIDER, "broken", "Broken", target=failing_model))
    run = run_agent(AgentFactory(model={"provider": "broken", "name": "one"}))

    collector = flushed()
    assert run.status == "failed"
    assert collector.named("run")[0].status.code == 2
    assert MARKER.encode() not in received(collector)


def test_texts_are_exported_where_the_operator_allows_it(agent, flushed, settings):
    settings.TRACE_CONTENT = True
    run_agent(agent)

    assert MARKER.encode() in received(flushed())


def test_an_owner_can_keep_texts_out_of_traces(agent, flushed, settings):
    settings.TRACE_CONTENT = True
    TraceRule.objects.create(owner_id=agent.owner_id, allows_content=False)
    run_agent(agent)

    assert flushed().named("run")
    assert MARKER.encode() not in received(flushed())


def test_long_texts_are_cut(agent, flushed, settings):
    """While the collector is away, thousands of spans wait in memory."""
    settings.TRACE_CONTENT = True
    wait_for_end(start_run(agent, member("editor"), "word " * 10_000))

    lengths = [len(item.value.string_value) for span in flushed().spans for item in span.attributes]
    assert max(lengths) == 32_768
