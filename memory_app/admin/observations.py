"""Admin of observations, without texts."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from access_app.admin_base.staff_access import ReadOnlyAdmin
from agents_app.models import Agent
from memory_app.admin.oldest_first import oldest_conversations
from memory_app.models import Observation, Thread
from memory_app.observational.jobs import observe_if_enabled
from memory_app.observational.limits import observational_options_of_agent


@admin.register(Observation)
class ObservationAdmin(ReadOnlyAdmin):
    """Figures of the observations of conversations that the user may read. Superusers have them made again."""

    list_display = ("__str__", "thread", "generation", "is_active", "tokens", "message_tokens", "model", "created_at")
    list_filter = ("is_active", "created_at")
    search_fields = ("thread__key", "model")
    list_select_related = ("thread",)
    # Django would also count the whole table, which has rows of every conversation.
    show_full_result_count = False
    ordering = ("-id",)
    fields = (
        "thread",
        "generation",
        "first",
        "last",
        "is_active",
        "tokens",
        "message_tokens",
        "model",
        "usage",
        "created_at",
    )

    actions = ("observe_again",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Observation]:
        readable = Thread.objects.readable_on_pages(request.user)
        return super().get_queryset(request).filter(thread__in=readable)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return super().get_actions(request) if request.user.is_superuser else {}

    @admin.action(description="Observe again: the whole conversations of the selected observations")
    def observe_again(self, request: HttpRequest, observations: QuerySet[Observation]) -> None:
        """Delete the observations of these conversations, and let a worker make them again."""
        threads = Thread.objects.filter(pk__in=observations.order_by().values("thread"))
        agents = Agent.objects.filter(pk__in=threads.values("agent")).select_related("active_version")
        observing = [agent.pk for agent in agents if observational_options_of_agent(agent) is not None]
        left = threads.exclude(agent__in=observing).count()
        chosen = oldest_conversations(request, observations.filter(thread__agent__in=observing), "thread")
        # Those that are deleted meanwhile count neither as observed nor as left out.
        observed = Thread.objects.filter(pk__in=[key for (key,) in chosen]).select_related("agent__active_version")
        count = sum(map(observe_anew, observed))
        noun = "conversation is" if count == 1 else "conversations are"
        if count:
            messages.success(request, f"{count:,} {noun} observed again. The jobs show the progress.")
        if left:
            messages.warning(
                request, f"{left:,} stay as they are: their agents no longer have an observational memory."
            )


@transaction.atomic
def observe_anew(thread: Thread) -> bool:
    """Delete the observations of a conversation, and let a worker make them again. Return False if it was deleted."""
    # Locked, or a worker could store an observation between the deletion and the new job.
    if Thread.objects.select_for_update(of=("self",)).filter(pk=thread.pk).first() is None:
        return False
    thread.observations.all().delete()
    observe_if_enabled(thread)
    return True
