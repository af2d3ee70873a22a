"""One trace over the processes of a copy: web server, worker, and a sub-agent."""

from tests.collector import attributes, collecting
from tests.runs import DEMO
from tests.served import wait_until
from tests.served_accounts import serving_with_accounts


def test_a_run_over_web_and_worker_with_a_sub_agent_is_one_trace(tmp_path):
    with collecting() as collector:
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "WEB_WORKERS": "1",
        }
        with serving_with_accounts(tmp_path / "var", **variables) as copy:
            api = copy.client(copy.keys["publisher"])
            for agent in (
                {"id": "helper", "name": "Helper", "instructions": "Help.", "model": DEMO},
                {
                    "id": "clerk",
                    "name": "Clerk",
                    "instructions": "Answer.",
                    "model": DEMO,
                    "agents": ["helper"],
                    "scorers": {"answer-length": {}},
                },
            ):
                made = api.post("/api/stored/agents", json=agent)
                assert made.status_code == 201, made.text
            answer = api.post("/api/agents/clerk/generate", json={"messages": "Use agent-helper for this"})
            assert answer.status_code == 200, answer.text
            wait_until(lambda: collector.named("scorer answer-length"), 30, "the span of the scorer")
            wait_until(lambda: len(collector.named("run")) == 2, 30, "the spans of both runs")

        request = "POST api/agents/<str:agent_id>/generate"
        wait_until(lambda: collector.named(request), 10, "the span of the request")
        trace_id = collector.named(request)[0].trace_id
        spans = [span for span in collector.spans if span.trace_id == trace_id]
        names = {span.span_id: span.name for span in spans}
        assert {(names.get(span.parent_span_id, ""), span.name) for span in spans} == {
            ("", request),
            (request, "run"),
            ("run", "invoke_agent Clerk"),
            ("run", "invoke_agent Helper"),
            ("invoke_agent Clerk", "chat echo"),
            ("invoke_agent Helper", "chat echo"),
            ("invoke_agent Clerk", "execute_tool agent-helper"),
            ("execute_tool agent-helper", "run"),
            ("run", "job score_run"),
            ("job score_run", "scorer answer-length"),
        }
        agents = {attributes(span)["agentcms.agent.id"] for span in spans if span.name == "run"}
        assert agents == {"clerk", "helper"}
