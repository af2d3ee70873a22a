"""Fill an empty application with demo data, through the doors that its users use."""

from __future__ import annotations

import json
import os
import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from access_app.models import Membership
from access_app.role import Role
from agents_app.editing.change_context import Source, change
from agents_app.models import Agent
from versions_app.demo.stories import DEMO_USERS, DemoAgent, DemoStep, load_demo_agents

User = get_user_model()


class Command(BaseCommand):
    help = "Creates demo users with random passwords and a dozen agents, unless there is a user or an agent already."

    def handle(self, *args: Any, **options: Any) -> None:
        if User.objects.exists() or Agent.objects.exists():
            return
        with transaction.atomic():
            passwords = {person[0]: secrets.token_urlsafe(9) for person in DEMO_USERS}
            people = {person[0]: create_user(*person, passwords[person[0]]) for person in DEMO_USERS}
            for story in load_demo_agents():
                create_demo_agent(story, people)
            write_passwords(passwords)
        self.stderr.write(f"Created {len(people)} users and {Agent.objects.count()} agents.")


def create_user(username: str, full_name: str, superuser: bool, roles: dict[str, str], password: str) -> Any:
    first, last = full_name.split()
    user = User(username=username, first_name=first, last_name=last, is_staff=superuser, is_superuser=superuser)
    user.set_password(password)
    user.save()
    for owner_id, role in roles.items():
        Membership.objects.create(user=user, owner_id=owner_id, role=role)
    return user


def write_passwords(passwords: dict[str, str]) -> None:
    """The passwords of this data folder, for whoever may read its files."""
    users = [
        {"username": username, "password": passwords[username], "role": highest_role(superuser, roles)}
        for username, _, superuser, roles in DEMO_USERS
    ]
    descriptor = os.open(settings.DATA_DIR / "demo_passwords.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"users": users}, file, indent=2)


def highest_role(superuser: bool, roles: dict[str, str]) -> str:
    """What the start prints beside the name."""
    return "superuser" if superuser else max((Role(role) for role in roles.values()), key=lambda role: role.rank).value


def create_demo_agent(story: DemoAgent, people: dict[str, Any]) -> None:
    """Make the agent and let its history happen, step by step."""
    now = timezone.now()
    with change(actor=people[story.who], source=Source.PAGE, at=now - timedelta(days=story.days_ago)):
        made_at = now - timedelta(days=story.days_ago)
        agent = Agent(id=story.id, owner_id=story.owner_id, created_at=made_at, **story.fields)
        agent.save()
    for step in story.steps:
        with change(
            actor=people[step.who], source=Source.PAGE, at=now - timedelta(days=step.days_ago), message=step.message
        ):
            apply_step(step, agent)


def apply_step(step: DemoStep, agent: Agent) -> None:
    agent.refresh_from_db()
    if step.act in {"edit", "draft"}:
        with change(publish=step.act == "edit"):
            agent.edit(step_fields(step, agent))
        return
    version = agent.versions.get(version_number=step.number)
    if step.act == "name":
        version.update_description(name=step.name, pinned=step.pinned)
    elif step.act == "activate":
        version.activate()
    else:
        version.restore()


def step_fields(step: DemoStep, agent: Agent) -> dict[str, Any]:
    """What the step changes; a change inside the instructions is carried out on what is there."""
    before, after = step.replace
    if before not in agent.instructions:
        raise ValueError(f"The instructions of {agent.pk} do not say {before!r}.")
    if before:
        return {"instructions": agent.instructions.replace(before, after)}
    if step.add:
        return {"instructions": f"{agent.instructions}\n\n{step.add}"}
    return step.fields
