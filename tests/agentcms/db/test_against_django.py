"""Every compiled query sends the statement that Django executes for its queryset, on the database at hand.

A new Django that compiles querysets differently, or reads their rows in another way, fails here.
"""

import re
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.urls import get_resolver
from django.utils.timezone import now

from access_app.models import ApiKey, keys_with_prefix
from agentcms.db.statements.compiled_query import CompiledQuery
from agents_app.api.list_query import ORDER_COLUMNS, STATE_COLUMNS, agent_keys
from agents_app.api.representation import agent_row, agent_rows_by_id, agent_total
from agents_app.editing.change_context import change
from agents_app.editing.locking import agent_with_live_version, locked_agent
from agents_app.models import Agent
from evals_app.gates.enforcement import applying_gates
from evals_app.models import Dataset, ReleaseGate
from runs_app.approvals.expiry import runs_with_expired_calls
from runs_app.engine.reaper import possibly_lost_runs, untaken_runs
from runs_app.frequent_queries import (
    agent_to_run,
    calls_to_decide,
    cancel_requested_ids,
    chunks_of_run,
    events_after,
    leased_runs_of,
    locked_agent_of_run,
    locked_runs_of_holder,
    run_with_id,
)
from tests.factories import AgentFactory, UserFactory, member
from tests.runs_app.factories import PendingCallFactory, RunFactory
from versions_app.api.representation_cache import (
    pointers_with_total,
    version_keys,
    version_keys_by_id,
    version_rows_by_id,
)

pytestmark = pytest.mark.django_db

WINDOW = slice(1, 3)
ORDERS = [f"{sign}{column}" for column in ORDER_COLUMNS.values() for sign in ("", "-")]


def calls_of_runs(user, agent, run):
    """Each compiled query of runs, with values with which it finds something."""
    for pointer in ("active_version", "head_version"):
        yield agent_to_run, (pointer,), {"user": user, "agent_id": agent.pk}
    yield locked_agent_of_run, (3,), {"agent_id": agent.pk, "user_id": user.pk}
    yield leased_runs_of, (), {"user_id": user.pk, "agent_id": agent.pk}
    yield locked_runs_of_holder, (), {"ids": [run.pk], "holder": run.holder}
    yield cancel_requested_ids, (), {"holder": run.holder}
    yield run_with_id, (), {"run_id": run.pk}
    yield chunks_of_run, (), {"run_id": run.pk}
    yield calls_to_decide, (2,), {"user": user}
    yield events_after, (), {"run_id": run.pk, "number": 1}
    yield possibly_lost_runs, ("here",), {}
    yield untaken_runs, (), {}
    yield runs_with_expired_calls, (), {}


def calls(user, agent, prefix):
    """Each compiled query with each combination of its options, and values with which it finds something."""
    live, head = agent.active_version_id, agent.head_version_id
    yield keys_with_prefix, (), {"prefix": prefix}
    yield locked_agent, (), {"user": user, "agent_id": agent.pk}
    yield agent_with_live_version, (), {"user": user, "agent_id": agent.pk}
    yield applying_gates, (), {"agent_id": agent.pk, "owner_id": agent.owner_id}
    yield agent_total, (), {"user": user}
    for flag, relation in STATE_COLUMNS.values():
        yield agent_row, (relation,), {"user": user, "agent_id": agent.pk}
        yield agent_rows_by_id, (relation,), {"user": user, "agent_ids": [agent.pk, "missing"]}
        for order in ORDERS:
            yield agent_keys, (flag, order), {"user": user, "window": WINDOW}
    yield pointers_with_total, (), {"user": user, "agent_id": agent.pk}
    yield version_rows_by_id, (), {"ids": [live, head]}
    for with_pointers in (False, True):
        values = {"user": user, "agent_id": agent.pk, "a": live, "b": head}
        yield version_keys_by_id, (with_pointers,), values
    for order in (("-version_number",), ("created_at", "version_number")):
        yield version_keys, order, {"agent_id": agent.pk, "window": WINDOW}


@pytest.fixture(params=["member", "superuser"])
def user(request):
    return UserFactory(is_superuser=True) if request.param == "superuser" else member("editor", "us")


@pytest.fixture
def examples(user):
    """Calls on a database where each finds rows."""
    agents = [AgentFactory(id=name, owner_id="us", metadata={"é": [1]}) for name in "abcd"]
    for agent in agents:
        agent.edit({"name": "Two"})
        with change(publish=False):
            agent.edit({"name": "Three"})
    prefix = ApiKey.objects.issue(user)[0].prefix
    agent = Agent.objects.get(pk="b")
    dataset = Dataset.objects.create(id="questions", name="Questions", owner_id="us")
    for gated in (agent, None):
        ReleaseGate.objects.create(agent=gated, owner_id="us", dataset=dataset, scorer="exact", minimum=0.5)
    run = RunFactory(agent=agent, requested_by=user, open=True, holder="here", cancel_requested_at=now())
    durable = {"agent": agent, "is_durable": True}
    RunFactory(open=True, holder="here:1:a", lease_until=now(), **durable)
    RunFactory(open=True, status="queued", **durable)
    PendingCallFactory(run=RunFactory(suspended=True, expires_at=now(), agent=agent, requested_by=user))
    return [*calls(user, agent, prefix), *calls_of_runs(user, agent, run)]


def executed(act):
    """Return the result of an act, and the statements and parameters that it sends."""
    statements = []

    def note(execute, sql, parameters, many, context):
        statements.append((sql, list(parameters)))
        return execute(sql, parameters, many, context)

    with transaction.atomic(), connection.execute_wrapper(note):
        result = act()
    return result, [statement for statement in statements if "SAVEPOINT" not in statement[0]]


def with_parameters(statement, values):
    """A statement of Django with its LIMIT and OFFSET as parameters, if they are values of the compiled query."""
    sql, parameters = statement
    if "window" not in values or not (window := re.search(r"LIMIT (\d+) OFFSET (\d+)", sql)):
        return statement
    before, after = sql[: window.start()], sql[window.end() :]
    position = before.count("%s")
    parameters[position:position] = [int(window[1]), int(window[2])]
    return f"{before}LIMIT %s OFFSET %s{after}", parameters


def plain(row):
    """A row that compares by value: an object with everything that was read of it and of related objects."""
    if not hasattr(row, "_state"):
        return row
    state = {name: value for name, value in vars(row).items() if name != "_state"}
    related = {name: plain(value) for name, value in row._state.fields_cache.items()}
    return type(row), state, related, (row._state.adding, row._state.db), row.get_deferred_fields()


def test_the_statements_and_rows_are_those_of_django(examples):
    for query, options, values in examples:
        ours, sent = executed(lambda: query(*options, **values))  # noqa: B023
        theirs, expected = executed(lambda: list(query.build(*options, **values)))  # noqa: B023

        assert sent == [with_parameters(statement, values) for statement in expected], (query.__name__, options)
        assert [plain(row) for row in ours] == [plain(row) for row in theirs], (query.__name__, options)
        assert ours, query.__name__


def test_the_statements_are_those_that_django_compiles_for_other_values(examples):
    """The first values of a variant leave nothing behind in the statements of the next values."""
    other = {str: "other", int: 7, list: ["other"], slice: slice(5, 25), UUID: UUID(int=1)}
    for query, options, values in examples:
        query(*options, **values)
        changed = {
            name: value if name in ("user", "a", "b", "ids") else other[type(value)] for name, value in values.items()
        }
        sent, expected = (
            executed(lambda: list(act(*options, **changed)))[1]  # noqa: B023
            for act in (query, query.build)
        )

        assert sent == [with_parameters(statement, values) for statement in expected], (query.__name__, options)


def test_every_compiled_query_is_compared(examples):
    _ = get_resolver().url_patterns  # loads every view, and with it every query
    declared = {query for query in CompiledQuery.declared if not query.build.__module__.startswith("tests.")}

    assert declared == {query for query, _, _ in examples}


def test_a_user_model_with_other_columns_would_be_read_too(user):
    """The columns are those of the installed user model, not a list of names."""
    names = {field.attname for field in get_user_model()._meta.concrete_fields}
    key = ApiKey.objects.issue(user)[0]

    assert names <= vars(keys_with_prefix.first(prefix=key.prefix).user).keys()
