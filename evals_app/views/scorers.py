"""Pages of stored scorers: the list, create, change and delete, history, comparison, and a try on a run."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access_app.permissions import granted_covers, require_granted_role, require_role
from access_app.role import Role, RoleRequired
from agentcms.db.connections import return_connection
from agentcms.errors import ApiError, Conflict, NotFound, Unavailable
from agentcms.ids import parse_uuid
from agentcms.web.dialogs import redirect_page, render_dialog, replaced_reason, row_stamp
from agentcms.web.list_state import encode_query, search_text
from agentcms.web.post_transactions import atomic_post
from agentcms.web.template_context import TemplateContext
from agents_app.configuration.schema import ConfigError
from agents_app.configuration.sub_agents import listed_agents, name_agents
from agents_app.models import Agent
from agents_app.views.access import GET_POST, selectable_owners
from evals_app.datasets.judge_tests import judge_of, open_test_set
from evals_app.experiments.scoring import usable_scorers
from evals_app.forms.scorer_facts import changed_labels, configuration_facts, field_differences, type_label
from evals_app.forms.scorers import ScorerForm
from evals_app.models import Experiment, Scorer, ScorerVersion
from evals_app.scorers import changes
from evals_app.scorers.results import ScoreResult, answer_of_run
from evals_app.scorers.snapshots import score_by_snapshot
from evals_app.views.lookups import ROWS_PER_PAGE, list_gates
from runs_app.events.streams import StreamSlot, TooManyStreams
from runs_app.models import AgentRun

MAX_TRY_SECONDS = 60.0
SAVED_MESSAGE = "Draft saved. The live version still scores."
SAVED_UNPUBLISHED_MESSAGE = "Draft saved. No version is live yet: publish one, so that it can score."


def get_page_scorer(request: HttpRequest, scorer_id: str, role: Role = Role.VIEWER) -> Scorer:
    """Return a stored scorer. Raise Http404 if the user may not see it, and RoleRequired without the role."""
    rows = Scorer.objects.for_user(request.user).with_role(request.user).select_related("live", "head")
    row: Scorer = get_object_or_404(rows, pk=scorer_id)
    if role != Role.VIEWER:
        require_granted_role(request.user, role, row)
    return row


@require_safe
@login_required
def scorer_list(request: HttpRequest) -> HttpResponse:
    """List the stored scorers, and those in code."""
    rows = Scorer.objects.for_user(request.user).select_related("live", "head")
    if search := search_text(request.GET):
        rows = rows.with_text(search)
    page: Page[Scorer] = Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    entries = [entry for entry in usable_scorers(request.user).values() if entry.source == "code"]
    context = {
        "nav": "evals",
        "page": page,
        "rows": [(row, type_label(str(row.configuration.get("type")))) for row in page],
        "entries": [] if search else entries,
        "search": search,
        "query": encode_query(q=search),
        "may_create": bool(selectable_owners(request.user, Role.EDITOR)),
    }
    return render(request, "evals/scorers.html", context)


@require_http_methods(GET_POST)
@login_required
def create_scorer_page(request: HttpRequest) -> HttpResponse:
    """Create a scorer."""
    owners = selectable_owners(request.user, Role.EDITOR)
    if not owners:
        raise RoleRequired(Role.EDITOR, None)
    form = ScorerForm(request.POST or None, owners=owners)
    if form.is_valid():
        owner_id = form.cleaned_data["owner_id"]
        # The form offers the teams of editors, who may only create a draft.
        publish = request.POST.get("publish") == "yes"
        require_role(request.user, Role.PUBLISHER if publish else Role.EDITOR, owner_id)
        options = {"id": form.cleaned_data["key"] or None, "publish": publish}
        try:
            row = changes.create_scorer(
                form.snapshot, owner_id=owner_id, author=request.user.get_username(), **options
            )
        except ConfigError as error:
            form.add_issues(error.issues)
        except ApiError as error:
            form.add_error("key", error.error)
        else:
            messages.success(request, f"{row.name} was created.")
            return redirect("evals:scorer", row.pk)
    context = {"nav": "evals", "form": form, "scorer": None}
    return render(request, "evals/scorer_form.html", context, status=422 if form.errors else 200)


@require_http_methods(GET_POST)
@login_required
@atomic_post
def change_scorer_page(request: HttpRequest, scorer_id: str) -> HttpResponse:
    """Change a scorer: save a draft, or publish the change."""
    publish = request.POST.get("publish") == "yes"
    role = Role.PUBLISHER if publish else Role.EDITOR
    row = get_page_scorer(request, scorer_id, role)
    if request.method == "POST":
        changes.lock_scorer(row.pk)  # or a change between the check of the form and this one would be lost
        row = get_page_scorer(request, scorer_id, role)
    form = ScorerForm(request.POST or None, row=row)
    if form.is_valid():
        before = row.head.snapshot if row.head else {}
        # A change keeps what it does not name, so null removes the settings that the form has no more.
        change = {name: None for name in before if name not in form.snapshot} | form.snapshot
        options = {"publish": publish, "change_message": form.cleaned_data["change_message"]}
        try:
            changes.change_draft(row.pk, change, author=request.user.get_username(), **options)
        except ConfigError as error:
            form.add_issues(error.issues)
        else:
            saved = SAVED_MESSAGE if row.live_id else SAVED_UNPUBLISHED_MESSAGE
            messages.success(request, "Published." if publish else saved)
            return redirect("evals:scorer", row.pk)
    context = {"nav": "evals", "form": form, "scorer": row}
    return render(request, "evals/scorer_form.html", context, status=422 if form.errors else 200)


@require_http_methods(GET_POST)
@login_required
def delete_scorer_page(request: HttpRequest, scorer_id: str) -> HttpResponse:
    """Delete a scorer with its versions, after a question that names the agents that use it."""
    row = get_page_scorer(request, scorer_id, Role.PUBLISHER)
    name, why_not = row.name, replaced_reason(request, row) or changes.reason_to_keep(row)
    if request.method == "POST" and not why_not:
        try:
            changes.delete_scorer(row)
        except Conflict as error:  # a gate or an experiment was added meanwhile, or the scorer was replaced
            why_not = error.error
        else:
            messages.success(request, f"{name} was deleted.")
            return redirect_page(request, reverse("evals:scorers"))
    agents = listed_agents(request.user, Agent.objects.using_row("scorers", row.pk, row.owner_id))
    context = {
        "nav": "evals",
        "title": f"Delete “{name}”?",
        "body": "evals/_delete_scorer.html",
        "row_stamp": row_stamp(row),
        "version_count": row.versions.count(),
        "agent_names": name_agents(agents),
        "gates": list_gates(request, changes.gates_with_scorer(row)),
        "why_not": why_not,
        "buttons": [{"label": f"Delete {name}", "kind": "danger"}],
        "back": reverse("evals:scorer", args=[row.pk]),
    }
    return render_dialog(request, context, 409 if request.method == "POST" else 200)


@require_safe
@login_required
def scorer(request: HttpRequest, scorer_id: str) -> HttpResponse:
    """Show a scorer with its history. `?run=` fills in the form that tries it, and calls nothing."""
    row = get_page_scorer(request, scorer_id)
    return render_scorer(request, row, run_id=parse_run_address(request.GET.get("run", "")))


@require_POST
@login_required
def try_scorer(request: HttpRequest, scorer_id: str) -> HttpResponse:
    """Show a scorer with the score of its newest version for a run. A judge costs money."""
    row = get_page_scorer(request, scorer_id, Role.EDITOR)
    run_id = parse_run_address(request.POST.get("run", ""))
    return render_scorer(request, row, run_id=run_id, **try_on_run(request, row, run_id))


def parse_run_address(text: str) -> str:
    """Return the ID at the end of the address of a run, or the text itself."""
    return text.strip().rstrip("/").rpartition("/")[2]


def render_scorer(request: HttpRequest, row: Scorer, **context: object) -> HttpResponse:
    """Return the page of a scorer."""
    versions = Paginator(row.versions.all(), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    context |= {
        "nav": "evals",
        "scorer": row,
        "facts": [*configuration_facts(row.head.snapshot if row.head else {})],
        "page": versions,
        "history": [(version, changed_labels(version.changed_fields)) for version in versions],
        "may_edit": granted_covers(request.user, Role.EDITOR, row.granted),
        "may_publish": granted_covers(request.user, Role.PUBLISHER, row.granted),
        "has_tests": bool(judge_of(row)),
    }
    return render(request, "evals/scorer.html", context)


def try_on_run(request: HttpRequest, row: Scorer, run_id: str) -> TemplateContext:
    """Return the score of the newest version for a run that the user may read, or why there is none."""
    key = parse_uuid(run_id)
    run = AgentRun.objects.for_user(request.user).with_roles(request.user).filter(pk=key).first() if key else None
    # A scorer may tell what it reads: the calls of tools, which former members of the team may not see.
    if run is None or not run.details_visible_to(request.user):
        return {"problem": "This run was not found. Enter the ID or the address of a run whose calls you may read."}
    if not run.is_finished:
        return {"problem": "This run has not ended yet."}
    answer, snapshot = answer_of_run(run), row.head.snapshot if row.head else {}

    async def score() -> ScoreResult:
        return await asyncio.wait_for(score_by_snapshot(snapshot, answer), MAX_TRY_SECONDS)

    try:
        with StreamSlot(request.user):  # a judge blocks a thread
            return_connection()
            return {"run": run, "result": asyncio.run(score())}
    except (TooManyStreams, Unavailable) as error:
        return {"problem": error.error}
    except TimeoutError:
        return {"problem": f"The scorer took longer than {MAX_TRY_SECONDS:g} seconds."}


@require_POST
@login_required
def test_judge(request: HttpRequest, scorer_id: str) -> HttpResponse:
    """Lead to the start of an experiment of a ready-made judge over its test set."""
    row = get_page_scorer(request, scorer_id, Role.EDITOR)
    if not (judge := judge_of(row)):
        raise Http404
    dataset = open_test_set(judge, row.owner_id)
    # The newest version, as its page tries it.
    version = "live" if row.live_id == row.head_id else "draft"
    query = urlencode({"target": f"{Experiment.Target.SCORER}:{row.pk}", "version": version})
    return redirect(f"{reverse('evals:start', args=[dataset.pk])}?{query}")


@require_safe
@login_required
def compare_scorer_versions(request: HttpRequest, scorer_id: str) -> HttpResponse:
    """Show the fields in which two versions of a scorer differ."""
    row = get_page_scorer(request, scorer_id)
    try:
        old, new = (changes.get_scorer_version(row, request.GET.get(name, "")) for name in ("from", "to"))
    except NotFound:
        messages.error(request, "Choose two versions of this scorer.")
        return redirect("evals:scorer", row.pk)
    context = {"nav": "evals", "scorer": row, "old": old, "new": new}
    rows = field_differences(old.snapshot, new.snapshot)
    return render(request, "evals/scorer_compare.html", {**context, "rows": rows})


@require_POST
@login_required
def publish_scorer_version(request: HttpRequest, scorer_id: str, number: int) -> HttpResponse:
    """Let another version score from now on."""
    row = get_page_scorer(request, scorer_id, Role.PUBLISHER)
    version = get_object_or_404(row.versions, version_number=number)
    with transaction.atomic():
        before = changes.lock_scorer(row.pk)
        changes.activate_version(row.pk, version)
    messages.success(request, f"v{number} is live.", extra_tags=undo_scorer_publication_url(before, version))
    return redirect_page(request, reverse("evals:scorer", args=[row.pk]))


@require_POST
@login_required
def discard_scorer_draft(request: HttpRequest, scorer_id: str) -> HttpResponse:
    """Let changes start from the live version again."""
    row = get_page_scorer(request, scorer_id, Role.EDITOR)
    draft = changes.return_head_to_live(row.pk)
    message = f"Draft {draft} discarded. It stays in the history." if draft else "There is no draft to discard."
    messages.success(request, message)
    return redirect_page(request, reverse("evals:scorer", args=[row.pk]))


@require_POST
@login_required
def restore_scorer_version(request: HttpRequest, scorer_id: str, number: int) -> HttpResponse:
    """Create a version with the configuration of an earlier one, and publish it."""
    row = get_page_scorer(request, scorer_id, Role.PUBLISHER)
    version = get_object_or_404(row.versions, version_number=number)
    with transaction.atomic():
        before = changes.lock_scorer(row.pk)
        restored = changes.add_restored_version(row.pk, version, request.user.get_username())
    message = f"v{restored.version_number} is live, restored from v{number}."
    messages.success(request, message, extra_tags=undo_scorer_publication_url(before, restored))
    return redirect_page(request, reverse("evals:scorer", args=[row.pk]))


def undo_scorer_publication_url(before: Scorer, published: ScorerVersion) -> str:
    """Return the URL that publishes what was live before, or an empty text if nothing else was.

    `before` is the scorer as it was read under the lock: somebody else may have published since the page was loaded.
    """
    if before.live is None or before.live == published:
        return ""
    return reverse("evals:publish_scorer", args=[before.pk, before.live.version_number])
