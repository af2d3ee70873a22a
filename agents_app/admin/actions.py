"""What staff may do with an agent beside editing it: the verbs of the pages, each asked on a page of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import path

from access_app.admin_access import confirmation_page
from access_app.permissions import has_role
from access_app.role import Role
from agents_app.configuration.sub_agents import CircularReference
from agents_app.editing import bulk
from agents_app.editing.change_context import change
from agents_app.forms.actions import DiscardForm, DuplicateForm, SnapshotForm
from agents_app.models import Agent
from agents_app.views.access import owner_choices
from jobs_app import runner

ACTION_TITLES = {"duplicate": "Duplicate", "snapshot": "Save a version", "discard_draft": "Discard the draft"}
DRAFT_CHANGED_MESSAGE = "Somebody moved live or the draft since you opened this page. This is how it stands now."


class AgentActionsAdmin(admin.ModelAdmin):
    actions = ("publish_drafts", "export")

    def get_urls(self) -> list[Any]:
        acts = [
            path(f"<path:object_id>/{name.replace('_', '-')}/", self.view_of(name), name=f"agents_app_agent_{name}")
            for name in ACTION_TITLES
        ]
        return [*acts, *super().get_urls()]

    def view_of(self, name: str) -> Callable[..., HttpResponse]:
        act = getattr(self, name)

        def view(request: HttpRequest, object_id: str) -> HttpResponse:
            agent = get_object_or_404(self.get_queryset(request), pk=unquote(object_id))
            try:
                response: HttpResponse = act(request, agent)
            except Agent.DoesNotExist:  # it was deleted just now
                raise Http404 from None
            return response

        return self.admin_site.admin_view(view)

    def duplicate(self, request: HttpRequest, agent: Agent) -> HttpResponse:
        """A copy of what is live, with a history of its own."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        live, owners = agent.active_version, owner_choices(request, Role.EDITOR)
        form = DuplicateForm(request.POST or None, agent=agent, version=live, owners=owners)
        if form.is_valid() and (copy := self.copied(form, agent, live)):
            return self.done(request, copy, f"{agent.name} was duplicated as {copy.pk}.")
        sentence = f"The copy begins with what is live of {agent.name}, and has a history of its own."
        return self.ask(request, agent, form, "duplicate", sentence)

    def copied(self, form: DuplicateForm, agent: Agent, live: Any) -> Agent | None:
        said = form.cleaned_data
        try:
            with transaction.atomic():
                return agent.duplicate(said["id"], said["owner_id"], live, said["name"])
        except CircularReference as refusal:
            form.add_error(None, refusal.summary)
        except ValidationError as refusal:
            form.add_error(None, refusal.messages)
        except IntegrityError:
            form.add_error("id", "Somebody took this id just now.")
        return None

    def snapshot(self, request: HttpRequest, agent: Agent) -> HttpResponse:
        """A named version by hand, equal to the head; it does not go live."""
        if not self.has_change_permission(request, agent):
            raise PermissionDenied
        form = SnapshotForm(request.POST or None, initial={"pinned": True})
        if form.is_valid():
            said = form.cleaned_data
            with change(name=said["name"], message=said["change_message"]):
                version = agent.versions.snapshot(agent, pinned=said["pinned"])
            return self.done(request, agent, f"v{version.version_number} of {agent.name} was saved.")
        sentence = f"A version that says what {agent.name} says now. What is live stays live."
        return self.ask(request, agent, form, "snapshot", sentence)

    @transaction.atomic
    def discard_draft(self, request: HttpRequest, agent: Agent) -> HttpResponse:
        """Editing starts from live again, unless the draft moved since it was asked."""
        if not self.has_change_permission(request, agent):
            raise PermissionDenied
        row: Any = Agent.objects.get_locked(agent.pk)
        number = row.head_version.version_number
        if not row.has_draft:
            return self.done(request, agent, f"{agent.name} has no draft to discard.", messages.WARNING)
        form = DiscardForm(request.POST or None, initial={"head": row.head_version_id})
        if form.is_valid() and form.cleaned_data["head"] == row.head_version_id:
            agent.versions.discard_draft_locked(row)
            return self.done(request, agent, f"The draft v{number} of {agent.name} was discarded.")
        if form.is_bound:
            self.message_user(request, DRAFT_CHANGED_MESSAGE, messages.WARNING)
            form = DiscardForm(initial={"head": row.head_version_id})
        sentence = (
            f"The draft v{number} of {agent.name} is discarded: editing starts from live, "
            f"v{row.active_version.version_number}, again. Its versions stay in the history."
        )
        return self.ask(request, agent, form, "discard_draft", sentence)

    def done(self, request: HttpRequest, agent: Agent, sentence: str, level: int = messages.SUCCESS) -> HttpResponse:
        self.message_user(request, sentence, level)
        return redirect("admin:agents_app_agent_change", quote(agent.pk))

    def ask(self, request: HttpRequest, agent: Agent, form: forms.Form, act: str, sentence: str) -> HttpResponse:
        verb = ACTION_TITLES[act]
        said = {"form": form, "agent": agent, "verb": verb, "sentence": sentence}
        return confirmation_page(self, request, "agents_app/act", f"{verb}: {agent.name}", **said)

    @admin.action(description="Make the drafts of the selected agents live …")
    def publish_drafts(self, request: HttpRequest, agents: QuerySet[Agent]) -> HttpResponse | None:
        """Show the drafts, then make live those that stand as they were shown."""
        chosen = list(agents[: bulk.MAX_AGENTS + 1])
        if len(chosen) > bulk.MAX_AGENTS:
            self.message_user(request, f"Select at most {bulk.MAX_AGENTS} agents.", messages.ERROR)
            return None
        if "confirmed" not in request.POST:
            return self.ask_to_publish(request, chosen)
        publish = partial(bulk.publish_draft, confirmed=set(request.POST.getlist("draft")))
        with change(message=request.POST.get("reason", "")[:500]):
            results = bulk.apply_to_each(
                Agent.objects.for_user(request.user), request.user, [agent.pk for agent in chosen], publish
            )
        done = sum(result.done for result in results)
        self.message_user(request, f"Made {done} draft{'' if done == 1 else 's'} live.", messages.SUCCESS)
        for result in results:
            if not result.done:
                self.message_user(request, f"{result.name}: {result.sentence}", messages.WARNING)
        return None

    def ask_to_publish(self, request: HttpRequest, agents: list[Any]) -> HttpResponse | None:
        allowed = [agent for agent in agents if has_role(request.user, Role.PUBLISHER, agent.owner_id)]
        drafts = [(agent, bulk.live_and_draft(agent)) for agent in allowed if agent.has_draft]
        if not drafts:
            self.message_user(request, "None of them has a draft that you may make live.", messages.WARNING)
            return None
        title = f"Make {len(drafts)} draft{'' if len(drafts) == 1 else 's'} live"
        said = {"drafts": drafts, "left_alone": len(agents) - len(drafts), "verb": "Make live"}
        return confirmation_page(self, request, "agents_app/publish_drafts", title, **said)

    @admin.action(description="Export the selected agents")
    def export(self, request: HttpRequest, agents: QuerySet[Agent]) -> HttpResponse | None:
        """A file of them, made by a job of the member of staff."""
        chosen = list(agents.values_list("pk", flat=True)[: bulk.MAX_AGENTS + 1])
        if len(chosen) > bulk.MAX_AGENTS:
            self.message_user(request, f"Select at most {bulk.MAX_AGENTS} agents, or export all.", messages.ERROR)
            return None
        offer = runner.staff_jobs["export-agents"]
        job = runner.enqueue(offer.kind, {**offer.parameters, "agents": chosen}, requested_by=request.user)
        self.message_user(request, "The export was started. This page shows how far it is.")
        return redirect("admin:jobs_app_job_change", job.pk)
