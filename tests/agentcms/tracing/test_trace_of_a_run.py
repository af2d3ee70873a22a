"""The trace of a run: what it contains and how its spans belong together."""

import pytest
from django.db import OperationalError
from django.utils.functional import SimpleLazyObject

from agentcms.tracing import spans
from agentcms.tracing.requests import begin_request, end_request
from agents_app.registry import tool
from jobs_app import runner
from jobs_app.models import Job
from runs_app import scoring
from runs_app.engine import run_ends
from runs_app.models import AgentRun
from tests.agentcms.tracing.conftest import wait_for_spans_of_runs
from tests.api_client import Caller
from tests.collector import attributes
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, SLOW, start_run, wait_for_end
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")
INCOMING = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def user():
    return member("editor")


@pytest.fixture
def agent():
    AgentFactory(id="helper", model=DEMO)
    return AgentFactory(id="concierge", model=DEMO, agents=["helper"], scorers={"answer-length": {}})


def send(text: str) -> str:
    return "Sent."


def generate(user, text, **headers):
    body = {"messages": text}
    response = Caller(api_key(user)).post("/api/agents/concierge/generate", body, **headers)
    assert response.status_code == 200, response.content
    return AgentRun.objects.get(agent_key="concierge")


def score(run):
    jobs = Job.objects.filter(kind=scoring.SCORE_RUN, parameters__run=str(run.pk))
    wait_until(jobs.exists, 30, "the job, which is stored after the answer")
    runner.run_claimed(str(jobs.get().pk))


@pytest.mark.parametrize("is_durable", [True, False])
def test_request_run_tool_sub_agent_models_job_and_scorer_are_one_trace(agent, user, flushed, settings, is_durable):
    settings.RUN_DURABLE = is_durable
    run = generate(user, "Use agent-helper for this")
    score(run)

    collector = flushed()

    request = "POST api/agents/<str:agent_id>/generate"
    assert collector.tree() == {
        ("", request),
        (request, "run"),
        ("run", "invoke_agent Concierge"),
        ("invoke_agent Concierge", "chat echo"),
        ("invoke_agent Concierge", "execute_tool agent-helper"),
        ("execute_tool agent-helper", "run"),
        ("run", "job score_run"),
        ("job score_run", "scorer answer-length"),
    }
    assert len({span.trace_id for span in collector.spans}) == 1
    assert run.traceparent.split("-")[1] == collector.spans[0].trace_id.hex()


def test_the_span_of_a_run_says_what_ran_and_hides_the_owner(agent, user, flushed):
    run = generate(user, "Hello")

    values = attributes(flushed().named("run")[0])

    assert values == {
        "agentcms.run.id": str(run.pk),
        "agentcms.agent.id": "concierge",
        "agentcms.version.number": 1,
        "agentcms.owner": spans.hash_owner(""),
        "agentcms.segment": 0,
        "agentcms.run.status": "succeeded",
    }


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_cancelled_run_is_no_error(user, flushed, is_durable):
    run = start_run(AgentFactory(model=SLOW), user, "word " * 100, options={"durable": is_durable})
    wait_until(run.events.exists, 20, "the first event")
    run_ends.cancel_run(run.pk)
    wait_for_end(run)

    (span,) = flushed().named("run")
    assert (attributes(span)["agentcms.run.status"], span.status.code) == ("cancelled", 0)


def test_a_run_without_a_request_begins_a_trace(agent, user, flushed):
    run = wait_for_end(start_run(agent, user, "Hello"))

    assert ("", "start run") in flushed().tree()
    assert run.traceparent


def test_the_trace_of_an_authenticated_caller_is_continued(agent, user, flushed):
    generate(user, "Hello", traceparent=INCOMING)

    (request,) = [span for span in flushed().spans if span.name.startswith("POST ")]
    assert request.trace_id.hex() == INCOMING.split("-")[1]
    assert request.parent_span_id.hex() == INCOMING.split("-")[2]


def test_the_trace_of_an_unknown_caller_is_not_continued(db, client, flushed):
    client.get("/api/agents", headers={"traceparent": INCOMING})
    client.get("/login", headers={"traceparent": INCOMING})

    assert {span.trace_id.hex() for span in flushed().spans}.isdisjoint({INCOMING.split("-")[1]})
    assert len(flushed().spans) == 2


@pytest.mark.parametrize("headers", [{}, {"traceparent": INCOMING}])
def test_the_user_of_a_page_is_not_read_for_its_span_alone(rf, flushed, headers):
    """The database may be away, which is why the page has not read it."""

    def unavailable():
        raise OperationalError("connection refused")

    request = rf.get("/", headers=headers)
    request.user = SimpleLazyObject(unavailable)
    begin_request(request)

    end_request("", 503)

    assert [span.name for span in flushed().spans] == ["GET "]


def test_a_method_that_a_caller_invents_is_not_exported(rf, flushed):
    """A backend has an index of the names of spans, and an unknown caller may send any word."""
    begin_request(rf.generic("PASSWORD", "/"))

    end_request("", 405)

    (request,) = flushed().spans
    assert (request.name, attributes(request)["http.request.method"]) == ("_OTHER ", "_OTHER")


def test_a_run_that_waited_for_people_continues_in_a_new_trace_with_a_link(user, flushed):
    tool(key="send", requires_approval=True)(send)
    AgentFactory(id="concierge", model=DEMO, tools=["send"])
    run = generate(user, "Use send for this")
    call = run.pending_calls.get()
    body = {"runId": str(run.pk), "toolCallId": call.call_id}
    response = Caller(api_key(user)).post("/api/agents/concierge/approve-tool-call-generate", body)
    assert response.status_code == 200, response.content

    first, second = sorted(flushed().named("run"), key=lambda span: attributes(span)["agentcms.segment"])
    assert (second.parent_span_id, second.trace_id == first.trace_id) == (b"", False)
    (link,) = second.links
    assert (link.trace_id, link.span_id) == (first.trace_id, first.parent_span_id)
    assert ("run", "invoke_agent Concierge") in flushed().tree()


def test_nothing_is_sent_with_sampling_zero(agent, user, flushed, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")

    run = generate(user, "Use agent-helper for this")
    score(run)

    assert flushed().bodies == []


def test_nothing_is_stored_while_tracing_is_off(agent, user):
    run = generate(user, "Hello")
    wait_for_spans_of_runs()

    assert run.traceparent == ""
    assert Job.objects.get(kind=scoring.SCORE_RUN).traceparent == ""
