"""Deleting and archiving in the admin, by the rule of the pages: agents in use are left out unless confirmed."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from access_app.admin_base.confirmation import confirmation_page
from access_app.admin_base.lists import WithoutBulkDeletionMixin
from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.plural import pluralize
from agentcms.web.template_context import TemplateContext
from agents_app.configuration.sub_agents import dependents_payload
from agents_app.editing import bulk
from agents_app.forms.actions import DeleteForm, build_removal_form
from agents_app.models import Agent, AgentIndex
from agents_app.views.access import reject_replaced, selected_agents

DONE_VERBS = {"delete": "Deleted", "archive": "Archived", "unarchive": "Unarchived"}


class AgentRemovalAdmin(WithoutBulkDeletionMixin, admin.ModelAdmin):
    """The delete page of an agent, and the actions that delete, archive and unarchive the selected agents."""

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Move an agent to the trash, after the user typed its name and confirmed that others lose it."""
        agent = self.get_object(request, unquote(object_id))
        if agent is None:
            raise Http404
        if not self.has_delete_permission(request, agent):
            raise PermissionDenied
        # Before the form, which would have the key of this agent when it is rendered with its errors.
        reject_replaced(request, agent)
        used_by = dependents_payload(request.user, agent)
        form = DeleteForm(request.POST or None, name=agent.name, is_used=bool(used_by["total"]))
        if form.is_valid():
            try:
                with transaction.atomic():
                    self.get_locked_row(request, agent, Role.PUBLISHER).delete()
            except Agent.DoesNotExist:  # deleted since the query above
                raise Http404 from None
            self.message_user(request, f"{agent.name} was moved to the trash.", messages.SUCCESS)
            return redirect("admin:agents_app_agent_changelist")
        context = {"agent": agent, "form": form, "used_by": used_by, "verb": "Delete", **removal_context([agent])}
        return confirmation_page(self, request, "agents_app/delete", f"Delete {agent.name}?", **context)

    def get_locked_row(self, request: HttpRequest, agent: Agent, role: Role) -> Agent:
        """Lock an agent whose page was allowed before, and check the role again: it may have another team since.

        Raise Agent.DoesNotExist if the user no longer sees it, RoleRequired, and AgentReplaced for the form of
        another agent.
        """
        row = Agent.objects.for_user(request.user).with_role(request.user).get_locked(agent.pk)
        require_granted_role(request.user, role, row)
        reject_replaced(request, row)
        return row

    @admin.action(description="Delete selected agents …")
    def delete_agents(self, request: HttpRequest, agents: QuerySet[Agent]) -> HttpResponse | None:
        return self.confirm_and_apply(request, agents, "delete")

    @admin.action(description="Archive selected agents …")
    def archive_agents(self, request: HttpRequest, agents: QuerySet[Agent]) -> HttpResponse | None:
        return self.confirm_and_apply(request, agents, "archive")

    @admin.action(description="Unarchive selected agents")
    def unarchive_agents(self, request: HttpRequest, agents: QuerySet[Agent]) -> None:
        if (ids := self.selected_ids(request, agents)) is not None:
            visible = Agent.objects.for_user(request.user)
            self.report(request, "unarchive", bulk.apply_to_each(visible, request.user, ids, bulk.unarchive_agent))

    def confirm_and_apply(self, request: HttpRequest, agents: QuerySet[Agent], name: str) -> HttpResponse | None:
        """Ask for confirmation, naming the agents that use the selected ones. Act once it is given."""
        if (ids := self.selected_ids(request, agents)) is None:
            return None
        visible = selected_agents(request)
        confirmed = set(request.POST.getlist("confirmed_agent"))
        selection = bulk.describe_selection(request.user, visible, ids, confirmed)
        form = build_removal_form(name, request.POST if "confirmed" in request.POST else None, selection)
        if not form.is_valid():
            return self.ask(request, name, selection, form)
        action = partial(bulk.delete_agent if name == "delete" else bulk.archive_agent, confirmed=confirmed)
        self.report(request, name, bulk.apply_to_dependents_first(visible, request.user, ids, action))
        return None

    def selected_ids(self, request: HttpRequest, agents: QuerySet[Agent], advice: str = "") -> list[str] | None:
        """Return the IDs of the selected agents, or None with a message, which ends with the advice, if too many."""
        ids = list(agents.values_list("pk", flat=True)[: bulk.MAX_SELECTED_AGENTS + 1])
        if len(ids) <= bulk.MAX_SELECTED_AGENTS:
            return ids
        self.message_user(request, f"Select at most {bulk.MAX_SELECTED_AGENTS} agents.{advice}", messages.ERROR)
        return None

    def ask(self, request: HttpRequest, name: str, selection: bulk.Selection, form: Form) -> HttpResponse | None:
        """Render the question, or add a warning if the user may not remove any of the agents."""
        verb, agents = name.capitalize(), [*selection.unused, *(agent for agent, _ in selection.used)]
        if not agents:
            self.message_user(request, "You need the Publisher role in the teams of these agents.", messages.WARNING)
            return None
        context = {"selection": selection, "form": form, "act": name, "verb": verb, **removal_context(agents)}
        title = f"{verb} {pluralize(selection.possible_count, 'agent')}?"
        return confirmation_page(self, request, "agents_app/confirm_selected", title, **context)

    def report(self, request: HttpRequest, name: str, results: list[bulk.BulkResult]) -> None:
        done = sum(result.done for result in results)
        level = messages.SUCCESS if done else messages.WARNING
        self.message_user(request, f"{DONE_VERBS[name]} {pluralize(done, 'agent')}.", level)
        for result in results:
            if not result.done:
                self.message_user(request, f"{result.name}: {result.sentence}", messages.WARNING)


def removal_context(agents: list[Agent]) -> TemplateContext:
    """Return the number of the objects that belong to agents. An agent may have millions, so they are not listed."""
    # By the base managers: the default ones may hide rows.
    counts = {
        str(relation.related_model._meta.verbose_name_plural): relation.related_model._base_manager.filter(
            **{f"{relation.field.name}__in": agents}
        ).count()
        for relation in Agent._meta.related_objects
        if relation.related_model is not AgentIndex
    }
    return {"counts": {name: count for name, count in counts.items() if count}, "trash_days": settings.TRASH_DAYS}
