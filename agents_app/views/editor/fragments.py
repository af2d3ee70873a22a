"""Parts of the editor that it fetches while somebody edits: fields in another view, and the search of a picker."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from access_app.permissions import require_granted_role
from access_app.role import Role, RoleRequired
from agents_app.forms.create import NEW_AGENT_CONFIG, CreateForm
from agents_app.forms.editor import AgentEditForm
from agents_app.forms.existing_agent import ExistingAgentForm
from agents_app.forms.pickers import KIND_BY_FIELD, OptionSource
from agents_app.forms.processors_field import ProcessorRow
from agents_app.models import Agent
from agents_app.registry import Kind
from agents_app.views.access import get_agent, posted_owner, selectable_owners
from runs_app.providers.context_window import find_context_window


@login_required
@require_POST
def agent_fields(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Render the submitted fields of an agent again, without saving them."""
    agent = get_agent(request, agent_id)
    require_granted_role(request.user, Role.EDITOR, agent)
    return render_fields(request, ExistingAgentForm.from_request(request.POST, agent, request.user))


@login_required
@require_POST
def new_agent_fields(request: HttpRequest) -> HttpResponse:
    """Render the submitted fields of a new agent again, without saving them."""
    owners = selectable_owners(request.user, Role.EDITOR)
    if not owners:
        raise RoleRequired(Role.EDITOR, None)
    agent = Agent(owner_id=posted_owner(request, owners))
    return render_fields(
        request, CreateForm(request.POST, base=NEW_AGENT_CONFIG, user=request.user, agent=agent, owners=owners)
    )


def render_fields(request: HttpRequest, form: AgentEditForm) -> HttpResponse:
    form.show = request.POST.get("show", "")
    return render(request, "agents/_form.html", {"form": form})


@login_required
@require_safe
def agent_options(request: HttpRequest, agent_id: str, field: str) -> HttpResponse:
    """Search for what can be added to a field of an agent."""
    return render_options(request, get_agent(request, agent_id), field)


@login_required
@require_safe
def new_agent_options(request: HttpRequest, field: str) -> HttpResponse:
    """Search for what can be added to a field of a new agent."""
    # Any owner: the search finds only agents that the user may see.
    return render_options(request, Agent(owner_id=request.GET.get("owner_id", "")), field)


@login_required
@require_safe
def token_limit(request: HttpRequest) -> HttpResponse:
    """Render how many tokens a model reads at once. Not a part of the page: the data of all models loads slowly."""
    # Cut to the lengths of the inputs: a longer name is that of no model.
    limit = find_context_window(request.GET.get("provider", "")[:256], request.GET.get("model_name", "")[:256])
    return render(request, "agents/_token_limit.html", {"limit": limit, "text": f"{limit:,}" if limit else ""})


def render_options(request: HttpRequest, agent: Agent, field: str) -> HttpResponse:
    if field not in KIND_BY_FIELD:
        raise Http404
    source, query = OptionSource(field, request.user, agent), request.GET.get("q", "")
    page = source.search(query)
    is_processor = source.kind is Kind.PROCESSOR
    # The script copies the row of the chosen option, which has inputs for the arguments of a processor.
    rows = [(option, ProcessorRow.new(option.key) if is_processor else None) for option in page.options]
    context = {"field": field, "page": page, "query": query, "rows": rows}
    return render(request, "agents/_options.html", context)
