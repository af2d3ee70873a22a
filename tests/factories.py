"""Factories of users, memberships, keys and agents."""

from typing import Any

import factory
from django.contrib.auth import get_user_model
from django.utils import timezone

from access_app.models import ApiKey, Membership
from access_app.role import Role
from agents_app.models import Agent

PASSWORD = "a long enough password"


class UserFactory(factory.django.DjangoModelFactory[Any]):
    """A user without membership, with `PASSWORD`."""

    class Meta:
        model = get_user_model()

    username = factory.Sequence(lambda n: f"user{n}")
    password = factory.django.Password(PASSWORD)


class MembershipFactory(factory.django.DjangoModelFactory[Membership]):
    """A viewer membership of the shared space."""

    class Meta:
        model = Membership

    user = factory.SubFactory(UserFactory)
    owner_id = ""
    role = Role.VIEWER


class AgentFactory(factory.django.DjangoModelFactory[Agent]):
    """A saved agent of the shared space, with its version 1."""

    class Meta:
        model = Agent

    id = factory.Sequence(lambda n: f"agent-{n}")
    name = "Concierge"
    instructions = "Greet guests.\nAnswer briefly."
    model = factory.LazyFunction(lambda: {"provider": "demo", "name": "echo"})


def archived_agent(agent_id: str, owner_id: str = "") -> Agent:
    """Return a saved agent that is archived."""
    agent = AgentFactory(id=agent_id, owner_id=owner_id)
    Agent.objects.filter(pk=agent_id).update_unguarded(archived_at=timezone.now())
    agent.refresh_from_db()
    return agent


def member(role: Role | str = Role.PUBLISHER, owner_id: str = "", **fields: Any) -> Any:
    """Return a user with one role for one owner."""
    return MembershipFactory(user=UserFactory(**fields), owner_id=owner_id, role=role).user


def api_key(user: Any, role: Role | str = "", **fields: Any) -> str:
    """Return the secret of a new key of the user with this role."""
    return ApiKey.objects.issue(user, role=role, **fields)[1]
