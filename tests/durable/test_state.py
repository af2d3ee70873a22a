"""The decision that a run is durable, and the row of such a run."""

import json

import pytest
from pydantic_core import to_jsonable_python

from runs_app.models import AgentRun
from runs_app.resolution import ResolvedAgent
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.mark.parametrize(
    ("call", "agent", "setting", "is_durable"),
    [
        (None, None, False, False),
        (None, None, True, True),
        (None, False, True, False),
        (None, True, False, True),
        (None, {"maxSteps": 2}, False, True),
        (False, True, True, False),
        (True, False, False, True),
        ({"maxSteps": 2}, False, False, True),
    ],
)
def test_the_call_decides_before_the_agent_and_the_setting(settings, call, agent, setting, is_durable):
    settings.RUN_DURABLE = setting
    options = {} if call is None else {"durable": call}

    run = start_run(AgentFactory(model=DEMO, durable=agent), member("editor"), options=options)

    assert wait_for_end(run).is_durable is is_durable
    assert run.status == "succeeded"
    assert "durable" not in run.input["options"]


def test_the_body_of_a_call_says_so(settings):
    settings.RUN_DURABLE = False
    AgentFactory(id="concierge", model=DEMO)

    answer = Caller(api_key(member("editor"))).post(
        "/api/agents/concierge/generate", {"messages": "Hello", "durable": {"maxSteps": 3}}
    )

    run = AgentRun.objects.get()
    assert (answer.status_code, run.is_durable, run.input["options"]) == (200, True, {"maxSteps": 3})


@pytest.mark.parametrize("value", ["yes", 1, {}, {"maxSteps": 0}])
def test_another_value_in_a_call_is_refused(value):
    AgentFactory(id="concierge", model=DEMO)

    answer = Caller(api_key(member("editor"))).post(
        "/api/agents/concierge/generate", {"messages": "Hello", "durable": value}
    )

    assert (answer.status_code, [issue["field"] for issue in answer.body["issues"]]) == (400, ["durable"])
    assert not AgentRun.objects.exists()


def test_a_limit_of_the_agent_gives_way_to_that_of_the_call():
    agent = AgentFactory(model=DEMO, durable={"maxSteps": 2})

    limited = start_run(agent, member("editor"))
    own_limit = start_run(agent, member("editor"), options={"maxSteps": 7})

    assert limited.input["options"] == {"maxSteps": 2}
    assert own_limit.input["options"] == {"maxSteps": 7}


def test_unsaved_text_never_runs_durably(settings):
    settings.RUN_DURABLE = True
    from runs_app.engine.start.run import start_run

    row = AgentFactory(model=DEMO)
    user = member("editor")
    unsaved = ResolvedAgent.unsaved(row, {**row.active_version.snapshot, "durable": True})

    run = start_run(unsaved, user=user, messages="Hello", options={"durable": True})

    assert wait_for_end(run).is_durable is False


def test_a_queued_run_needs_nothing_but_its_row(monkeypatch):
    """Everything that continues a run is JSON in the database."""
    from tests.durable.conftest import QuietRunner

    monkeypatch.setattr("runs_app.engine.start.rows.get_runner", QuietRunner)
    run = start_run(AgentFactory(model=DEMO), member("editor"), options={"durable": True})

    run.refresh_from_db()
    assert (run.status, run.holder, run.lease_until, run.fence) == ("queued", "", None, 0)
    assert (run.root_id, run.segment, run.attempts) == (run.pk, 0, 0)
    for column in (run.configuration, run.input):
        assert json.loads(json.dumps(to_jsonable_python(column))) == column


def test_the_version_stays_when_another_one_is_published(planned):
    model = {"provider": "planned", "name": "plan", "plan": [[["count", {"number": 1, "gate": "one"}]], "Old."]}
    agent = AgentFactory(model=model, tools=["count"])
    run = start_run(agent, member("editor"), options={"durable": True})
    from tests.durable.test_journal import lose, take_over, wait_for_steps

    wait_for_steps(run, 1, "started")
    lose(run)
    agent.edit({"model": {**model, "plan": ["New."]}})
    (planned / "one.open").touch()

    done = take_over(run)

    assert (done.output, done.version_number) == ("Old.", 1)


def test_limits_do_not_count_runs_that_wait_for_people(settings):
    settings.RUNS_PER_USER = 1
    user, agent = member("editor"), AgentFactory(model=DEMO)
    done = wait_for_end(start_run(agent, user))
    AgentRun.objects.filter(pk=done.pk).update(
        status="suspended", finished_at=None, suspended_at=done.finished_at, is_durable=True
    )

    assert wait_for_end(start_run(agent, user)).status == "succeeded"


def test_a_user_with_many_waiting_runs_starts_no_more(settings):
    from runs_app.engine.start.concurrency_limits import TooManyRuns
    from tests.runs_app.factories import RunFactory

    settings.RUNS_SUSPENDED_PER_USER = 2
    user, agent = member("editor"), AgentFactory(model=DEMO)
    first = RunFactory(suspended=True, chunks=[], requested_by=user)
    assert wait_for_end(start_run(agent, user)).status == "succeeded"
    RunFactory(suspended=True, chunks=[], requested_by=user, agent=first.agent)

    with pytest.raises(TooManyRuns, match="limit of 2 suspended runs"):
        start_run(agent, user)
    assert wait_for_end(start_run(agent, member("editor"))).status == "succeeded"
