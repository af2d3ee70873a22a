"""Compiled queries: values, variants, rows, and what cannot be compiled."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import CharField, Count, F, QuerySet, Value
from django.test.utils import CaptureQueriesContext

from access_app.caller_params import CallerParam
from access_app.models import Membership
from agentcms.db.statements.compiled_query import compiled_query, run_together
from agentcms.db.statements.parameters import json_array_items
from agents_app.models import Agent
from tests.factories import AgentFactory, MembershipFactory, UserFactory, member
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db


@compiled_query
def memberships_of(*, user_id: int, role: str) -> QuerySet[Membership]:
    return Membership.objects.filter(user_id=user_id, role=role).order_by("owner_id")


@compiled_query
def agents_ordered_by(*columns: str, window: slice) -> QuerySet[Agent, Any]:
    return Agent.objects.order_by(*columns).values_list("pk", flat=True)[window]


@compiled_query
def visible_ids(*, user: CallerParam) -> QuerySet[Agent, Any]:
    return Agent.objects.for_user(user).order_by("pk").values_list("pk", flat=True)


def test_each_call_fills_in_its_values():
    ann, bob = UserFactory(), UserFactory()
    rows = [MembershipFactory(user=user, owner_id=owner) for user in (ann, bob) for owner in ("b", "a")]

    assert memberships_of(user_id=ann.pk, role="viewer") == [rows[1], rows[0]]
    assert memberships_of(user_id=bob.pk, role="viewer") == [rows[3], rows[2]]
    assert memberships_of(user_id=bob.pk, role="' OR 1=1 --") == []


def test_the_function_is_called_once_for_each_variant():
    built = []

    @compiled_query
    def agents(column: str, *, name: str) -> QuerySet[Agent]:
        built.append(column)
        return Agent.objects.filter(name=name).order_by(column)

    for column in ("pk", "name", "pk"):
        assert agents(column, name="nobody") == []

    assert built == ["pk", "name"]


def test_a_window_selects_rows():
    for name in "abcd":
        AgentFactory(id=name)

    assert agents_ordered_by("pk", window=slice(1, 3)) == ["b", "c"]
    assert agents_ordered_by("-name", "-pk", window=slice(0, 2)) == ["d", "c"]
    assert agents_ordered_by("pk", window=slice(4, 8)) == []


def test_members_and_superusers_have_queries_of_their_own():
    AgentFactory(id="ours", owner_id="us")
    AgentFactory(id="theirs", owner_id="them")
    ann, root = member("viewer", "us"), UserFactory(is_superuser=True)

    assert visible_ids(user=ann) == ["ours"]
    assert visible_ids(user=root) == ["ours", "theirs"]
    assert visible_ids(user=UserFactory()) == []


def test_lists_and_uuids_are_values():
    @compiled_query
    def versions(*, ids: list[UUID], agent_ids: list[str], version_id: UUID) -> QuerySet[AgentVersion, Any]:
        among = AgentVersion.objects.filter(pk__in=json_array_items(ids, "uuid"), pk=version_id)
        return among.filter(agent__in=json_array_items(agent_ids)).values_list("pk", flat=True)

    version_id = AgentFactory(id="é").active_version_id

    assert versions(ids=[uuid4(), version_id], agent_ids=["x", "é"], version_id=version_id) == [version_id]
    assert versions(ids=[], agent_ids=["é"], version_id=version_id) == []
    assert versions(ids=[version_id], agent_ids=['"'], version_id=version_id) == []


def test_objects_have_their_related_objects_and_annotations(django_assert_num_queries):
    @compiled_query
    def agents(*, agent_id: str, label: str) -> QuerySet[Agent]:
        agents = Agent.objects.filter(pk=agent_id).select_related("active_version", "head_version")
        return agents.annotate(label=Value(label, CharField()), number=F("active_version__version_number"))

    AgentFactory(id="a", metadata={"é": [1]}).edit({"name": "Two"})

    with django_assert_num_queries(1):
        agent = agents.first(agent_id="a", label="%s")
        assert (agent.label, agent.number, agent.metadata) == ("%s", 2, {"é": [1]})
        assert agent.active_version.snapshot["name"] == "Two"
    assert not agent._state.adding
    assert agent == Agent.objects.get(pk="a")


def test_missing_related_objects_are_none():
    @compiled_query
    def versions(*, number: int) -> QuerySet[AgentVersion]:
        return AgentVersion.objects.filter(version_number=number).select_related("author")

    AgentFactory()

    assert versions.first(number=1).author is None


def test_first_is_the_first_row_or_none():
    user = member("viewer", "b")

    assert memberships_of.first(user_id=user.pk, role="viewer").owner_id == "b"
    assert memberships_of.first(user_id=user.pk, role="editor") is None


def test_values_list_returns_tuples_with_python_values():
    @compiled_query
    def versions(*, agent_id: str) -> QuerySet[AgentVersion, Any]:
        return AgentVersion.objects.filter(agent_id=agent_id).values_list("pk", "references", "created_at", "pinned")

    agent = AgentFactory(id="a")
    version = agent.active_version

    assert versions(agent_id="a") == [(version.pk, version.references, version.created_at, False)]


def test_queries_run_together_inside_a_transaction():
    agents = [AgentFactory(id=name) for name in "ab"]

    with transaction.atomic():
        first, second = run_together(
            agents_ordered_by.bind("pk", window=slice(0, 1)), memberships_of.bind(user_id=0, role="viewer")
        )

    assert (first, second) == ([agents[0].pk], [])


def build_with_values(*, name: str):
    return Agent.objects.filter(name=name).values("pk")


def build_with_prefetch(*, name: str):
    return Agent.objects.filter(name=name).prefetch_related("versions")


def build_without_its_value(*, name: str):
    return Agent.objects.values_list("pk")


def build_with_a_changed_value(*, name: str):
    return Agent.objects.filter(name=name.upper()).values_list("pk")


def build_with_an_unknown_type(*, name: float):
    return Agent.objects.filter(name=name).values_list("pk")


@pytest.mark.parametrize(
    "build",
    [
        build_with_values,
        build_with_prefetch,
        build_without_its_value,
        build_with_a_changed_value,
        build_with_an_unknown_type,
    ],
)
def test_a_query_that_cannot_be_compiled_raises(build):
    with pytest.raises(TypeError):
        compiled_query(build)(name="x")


def test_captured_queries_include_compiled_ones():
    with CaptureQueriesContext(connection) as captured:
        memberships_of(user_id=1, role="viewer")

    assert len(captured) == 1


def test_an_aggregate_in_a_subquery_is_compiled():
    @compiled_query
    def users(*, count: int) -> QuerySet[Any, Any]:
        users = get_user_model().objects.annotate(total=Count("memberships"))
        return users.filter(total=count).order_by("pk").values_list("username", flat=True)

    user = member("viewer", username="one")
    MembershipFactory(user=user, owner_id="another")
    UserFactory(username="none")

    assert [users(count=number) for number in (0, 2)] == [["none"], ["one"]]
