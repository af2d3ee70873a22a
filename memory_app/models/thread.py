"""Conversations that are stored for the memory of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self, cast

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from access_app.permissions import has_role_everywhere, owner_ids_for
from access_app.role import Role
from agents_app.models import Agent
from memory_app.models.resource import Resource

if TYPE_CHECKING:
    from access_app.caller import Caller
    from memory_app.realms import MemoryCaller


class ThreadQuerySet(models.QuerySet["Thread"]):
    def for_caller(self, caller: MemoryCaller) -> Self:
        """Filter to the threads that a caller of the API may read: those of its realm, and those it takes part in.

        A key of a single resource reads the threads of that one. A member takes part until leaving the team of the
        thread's agent.
        """
        if caller.is_bound:
            return self.filter(realm=caller.realm, resource_key=caller.default_resource)
        if caller.owner_id is not None:
            return self.filter(realm=caller.realm)
        joined = Q(pk__in=joined_threads(caller.user))
        return self.filter(Q(realm=caller.realm) | joined)

    def readable_on_pages(self, user: Caller) -> Self:
        """Filter to the threads that a signed-in user may read: also those of agents that the user may publish.

        Threads of experiments are left out. Nobody speaks in them.
        """
        return self.filter(experiment_id=None)._readable_by(user)

    def _readable_by(self, user: Caller) -> Self:
        if has_role_everywhere(user, Role.PUBLISHER):
            return self
        joined = Q(pk__in=joined_threads(user))
        owners = owner_ids_for(user, Role.PUBLISHER)
        # Of an agent that has moved, the new team reads no conversations from before, as it reads no runs.
        published = Q(agent__owner_id__in=owners) & (Q(agent_owner_id=None) | Q(agent_owner_id__in=owners))
        return self.filter(Q(realm=f"u{user.pk}") | joined | published)

    def of_resource(self, realm: str, resource: str) -> Self:
        """Filter to the threads of a resource, without those of sub-agents and experiments."""
        return self.filter(realm=realm, resource_key=resource, parent=None, experiment_id=None)


def joined_threads(user: Caller) -> models.QuerySet[Participant, int]:
    """Return the IDs of the threads that a user takes part in, as a member of the team of their agent."""
    participants = Participant.objects.filter(user_id=cast(int, user.pk))
    if not has_role_everywhere(user, Role.VIEWER):
        participants = participants.filter(thread__agent__owner_id__in=owner_ids_for(user))
    return participants.values_list("thread_id", flat=True)


class Thread(models.Model):
    """One conversation of a resource. Agents share it."""

    key = models.CharField("thread ID", max_length=256, editable=False, help_text="Chosen by the API client.")
    # Null in rows that the previous release wrote after the migration.
    realm = models.CharField(max_length=136, null=True, editable=False)
    resource = models.ForeignKey(Resource, models.CASCADE, null=True, editable=False, related_name="threads")
    # A copy of the key of the resource: lists filter and sort by one index of this table. The column is older than the
    # rows of resources, and has the name that the previous release knows.
    resource_key = models.CharField(
        "resource ID", max_length=256, blank=True, default="", editable=False, db_column="resource"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="threads",
        editable=False,
        verbose_name="created by",
    )
    agent = models.ForeignKey(Agent, models.SET_NULL, null=True, related_name="threads", editable=False)
    agent_key = models.CharField("agent ID", max_length=256, editable=False)
    # Null in threads without an agent, and in rows of the previous release.
    agent_owner_id = models.CharField("team of the agent at the start", max_length=128, null=True, editable=False)
    parent = models.ForeignKey("self", models.CASCADE, null=True, editable=False, related_name="children")
    title = models.CharField(max_length=200, blank=True, default="", db_default="", editable=False)
    metadata = models.JSONField(null=True, editable=False)
    experiment_id = models.UUIDField(null=True, editable=False, help_text="The experiment that made the thread.")
    last_number = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="The number of the last message, which is never used again."
    )
    working_memory = models.TextField(null=True, editable=False)
    working_revision = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    # The lease of the process that makes observations. Its value is its fence: only its holder may store them.
    observing_until = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ThreadQuerySet.as_manager()

    class Meta:
        # The model moved here from runs_app, and its table stayed.
        db_table = "runs_app_thread"
        ordering: ClassVar = ["-updated_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["realm", "key"], name="one_thread_per_realm_and_key")]
        indexes: ClassVar = [
            models.Index(fields=["updated_at"], name="thread_updated"),
            models.Index(fields=["resource", "-updated_at"], name="thread_of_resource"),
            # Lists of a resource, and the search for all data of one: both name it by its keys.
            models.Index(fields=["realm", "resource_key", "-updated_at"], name="thread_of_resource_key"),
            models.Index(
                fields=["experiment_id"], name="thread_of_experiment", condition=Q(experiment_id__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} with {self.agent_key}"

    @property
    def resource_name(self) -> str:
        """The resource for people: the username for the user's own resource, else the ID."""
        is_own = self.resource_key == self.realm == f"u{self.user_id}"
        return self.user.get_username() if is_own and self.user else str(self.resource_key)


class Participant(models.Model):
    """A member who takes part in a thread of somebody else."""

    thread = models.ForeignKey(Thread, models.CASCADE, editable=False, related_name="participants")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, editable=False, related_name="thread_participations"
    )
    name = models.CharField(max_length=150, editable=False)
    functional_role = models.CharField(max_length=100, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["thread", "user"], name="one_participant_per_user")]

    def __str__(self) -> str:
        return self.name
