"""The command that fills an empty database with demo data, through the interfaces of the application."""

from __future__ import annotations

import json
import os
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from access_app.models import Membership
from access_app.role import Role
from agentcms.wire.json_types import JSONObject
from agents_app.editing.change_context import Source, change
from agents_app.models import Agent
from versions_app.demo.stories import DEMO_USERS, DemoAgent, DemoStep, load_demo_agents


class Command(BaseCommand):
    help = "Creates demo users with random passwords and sixteen agents, if there are no users and no agents."

    def handle(self, *args: object, **options: object) -> None:
        if User.objects.exists() or Agent.objects.exists():
            return
        with transaction.atomic():
            passwords = {username: secrets.token_urlsafe(9) for username, *_ in DEMO_USERS}
            users = {row[0]: create_user(*row, passwords[row[0]]) for row in DEMO_USERS}
            for demo_agent in load_demo_agents():
                create_demo_agent(demo_agent, users)
            # Before the commit: nobody could sign in as these users if the file could not be written.
            write_passwords(passwords)
        self.stderr.write(f"Created {len(users)} users and {Agent.objects.count()} agents.")


def create_user(username: str, full_name: str, superuser: bool, roles: dict[str, str], password: str) -> User:
    first, last = full_name.split()
    user = User(username=username, first_name=first, last_name=last, is_staff=superuser, is_superuser=superuser)
    user.set_password(password)
    user.save()
    for owner_id, role in roles.items():
        Membership.objects.create(user=user, owner_id=owner_id, role=role)
    return user


def write_passwords(passwords: dict[str, str]) -> None:
    """Write the passwords to a file of the data folder that only its owner can read."""
    users = [
        {"username": username, "password": passwords[username], "role": displayed_role(superuser, roles)}
        for username, _, superuser, roles in DEMO_USERS
    ]
    descriptor = os.open(settings.DATA_DIR / "demo_passwords.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"users": users}, file, indent=2)


def displayed_role(superuser: bool, roles: dict[str, str]) -> str:
    """Return the role that the start-up message shows for a user."""
    return "superuser" if superuser else max((Role(role) for role in roles.values()), key=lambda role: role.rank).value


def create_demo_agent(demo_agent: DemoAgent, users: dict[str, User]) -> None:
    """Create an agent and apply the steps of its history."""
    now = timezone.now()
    with change(actor=users[demo_agent.author], source=Source.PAGE, at=now - timedelta(days=demo_agent.days_ago)):
        agent = Agent(id=demo_agent.id, owner_id=demo_agent.owner_id, **demo_agent.fields)
        agent.save()
    for step in demo_agent.steps:
        with change(
            actor=users[step.author], source=Source.PAGE, at=now - timedelta(days=step.days_ago), message=step.message
        ):
            apply_step(step, agent)


def apply_step(step: DemoStep, agent: Agent) -> None:
    agent.refresh_from_db()
    if step.action in {"edit", "draft"}:
        with change(publish=step.action == "edit"):
            agent.edit(step_fields(step, agent))
        return
    version = agent.versions.get(version_number=step.number)
    if step.action == "name":
        version.update_description(name=step.name, pinned=step.pinned)
    elif step.action == "activate":
        version.activate()
    else:
        version.restore()


def step_fields(step: DemoStep, agent: Agent) -> JSONObject:
    """Return the fields that the step changes. Raise ValueError if the text to replace is missing."""
    before, after = step.replace
    if before not in agent.instructions:
        raise ValueError(f"The instructions of {agent.pk} do not contain {before!r}.")
    if before:
        return {"instructions": agent.instructions.replace(before, after)}
    if step.add:
        return {"instructions": f"{agent.instructions}\n\n{step.add}"}
    return step.fields
