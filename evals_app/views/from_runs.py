"""Pages that add runs to a dataset: one from its page, several from a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from access_app.permissions import has_role_everywhere, owner_ids_for, require_role
from access_app.role import Role
from agentcms.db.text_conditions import contains_text
from agentcms.errors import ApiError
from agentcms.ids import parse_uuid
from agentcms.plural import pluralize
from agentcms.web.dialogs import redirect_page, render_dialog
from agentcms.web.list_state import search_text
from agentcms.web.template_context import TemplateContext
from agentcms.web.text_direction import isolate_text
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError
from agents_app.views.access import GET_POST
from evals_app.datasets.creation import create_dataset
from evals_app.datasets.from_runs import add_items_of_runs, item_of_run, names_of_answered_calls
from evals_app.datasets.schema import parse_dataset, parse_item_change
from evals_app.datasets.values import edited_value, text_of_json
from evals_app.models import Dataset
from evals_app.models.dataset import DatasetQuerySet
from evals_app.views.lookups import get_page_dataset
from runs_app.models import AgentRun
from runs_app.views.lookups import get_run, readable_runs

MAX_RUNS = 50  # of one selection
MAX_DATASETS = 100  # in the choice; a search finds the others


@dataclass
class RunForm:
    """The item of a run, to be edited. The fields of the form end with the ID of the run."""

    run: AgentRun
    input: str
    ground_truth: str
    calls: list[str]
    keeps_mocks: bool
    keeps_steps: bool
    item: JSONObject


@require_http_methods(GET_POST)
@login_required
def add_to_dataset(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Ask for a dataset and for changes of the item, then add a run to it."""
    run = get_run(request, run_id)
    return add_runs_to_dataset(request, [run], reverse("runs:view", args=[run.pk]))


@require_http_methods(GET_POST)
@login_required
def add_selected(request: HttpRequest) -> HttpResponse:
    """Add the selected runs of a list to a dataset, as one version."""
    values = request.POST if request.method == "POST" else request.GET
    ids = [run_id for text in values.getlist("run")[:MAX_RUNS] if (run_id := parse_uuid(text))]
    runs = {run.pk: run for run in readable_runs(request).filter(pk__in=ids)}
    if not runs:
        messages.error(request, "Select at least one run.")
        return redirect("runs:list")
    # In the order of the selection, each run once.
    return add_runs_to_dataset(request, [runs[pk] for pk in dict.fromkeys(ids) if pk in runs], reverse("runs:list"))


def add_runs_to_dataset(request: HttpRequest, runs: Sequence[AgentRun], back: str) -> HttpResponse:
    calls = names_of_answered_calls([run.pk for run in runs if run.details_visible_to(request.user)])
    forms = [read_form(request, run, calls.get(run.pk, [])) for run in runs]
    problem = ""
    if request.method == "POST":
        try:
            return add_forms(request, runs, forms)
        except ConfigError as error:
            problem = " ".join(f"{issue.field}: {issue.message}" for issue in error.issues)
        except ApiError as error:
            problem = error.error
    context = {
        "nav": "runs",
        "title": "Add to dataset",
        "body": "evals/_add_runs.html",
        "forms": forms,
        **dataset_context(request, runs),
        "new_name": request.POST.get("new_name", ""),
        "notice": problem,
        "buttons": [{"label": "Add to dataset", "kind": "primary"}],
        "back": back,
    }
    return render_dialog(request, context, 422 if problem else 200)


@transaction.atomic  # a new dataset is created only with its items
def add_forms(request: HttpRequest, runs: Sequence[AgentRun], forms: Sequence[RunForm]) -> HttpResponse:
    """Add the items of forms as one version, and go to the dataset. Raise ConfigError and ApiError."""
    dataset = chosen_dataset(request, runs)
    for form in forms:  # people typed these: a database refuses a NUL, for example
        parse_item_change({"input": form.item["input"], "groundTruth": form.item["ground_truth"]})
    count = add_items_of_runs(dataset, [form.item for form in forms]).added_count
    if count:
        messages.success(request, f"{pluralize(count, 'item')} added to {dataset.name} as version {dataset.version}.")
    if left := len(forms) - count:
        messages.info(request, f"{dataset.name} has {pluralize(left, 'item')} of the same runs already.")
    return redirect_page(request, reverse("evals:dataset", args=[dataset.pk]))


def read_form(request: HttpRequest, run: AgentRun, calls: list[str]) -> RunForm:
    """Return the form of a run as it was sent, or with what the run says. `calls` are the tools that it called."""
    keeps = {name: request.POST.get(f"{name}-{run.pk}") == "yes" for name in ("mocks", "steps")}
    item = item_of_run(run, request.user, with_mocks=keeps["mocks"], with_steps=keeps["steps"])
    texts = {name: text_of_json(item[name]) for name in ("input", "ground_truth")}
    for name in texts:
        sent = request.POST.get(f"{name}-{run.pk}")
        if sent is not None:
            item[name] = edited_value(sent, item[name])
            texts[name] = sent
    return RunForm(run, texts["input"], texts["ground_truth"], calls, keeps["mocks"], keeps["steps"], item)


def dataset_context(request: HttpRequest, runs: Sequence[AgentRun]) -> TemplateContext:
    """Return the choices of datasets: the first that a search finds, by name, and the chosen one."""
    rows, search = editable_datasets(request), search_text(request.GET)
    chosen = request.POST.get("dataset", "").replace("\0", "") or suggest_dataset(rows, runs)
    matching = rows.filter(contains_text("name", search)) if search else rows
    listed = [*matching[:MAX_DATASETS]]
    if not search and chosen not in {row.pk for row in listed}:
        listed = [*rows.filter(pk=chosen), *listed]
    return {
        "choices": [(row.pk, dataset_label(row)) for row in listed],
        "chosen": chosen if chosen in {row.pk for row in listed} else "",
        "search": search,
        "dataset_count": matching.count() if len(listed) >= MAX_DATASETS else len(listed),
    }


def editable_datasets(request: HttpRequest) -> DatasetQuerySet:
    """Return the datasets to which the user may add items, by name."""
    rows = Dataset.objects.for_user(request.user).filter(archived_at=None)
    if not has_role_everywhere(request.user, Role.EDITOR):
        # In the query: datasets that the user may only read would take the places of others.
        rows = rows.filter(owner_id__in=owner_ids_for(request.user, Role.EDITOR))
    return rows


def dataset_label(dataset: Dataset) -> str:
    """Return the name of a dataset, with its team."""
    return isolate_text(dataset.name) + (f" ({dataset.owner_id})" if dataset.owner_id else "")


def suggest_dataset(datasets: DatasetQuerySet, runs: Sequence[AgentRun]) -> str:
    """Return the ID of the first dataset that is for an agent of the runs, or a blank text."""
    fitting = datasets.for_any_target({run.agent_key for run in runs})
    return fitting.values_list("pk", flat=True).first() or ""


def chosen_dataset(request: HttpRequest, runs: Sequence[AgentRun]) -> Dataset:
    """Return the chosen dataset, or a new one of the team of the runs. Raise ApiError and ConfigError."""
    if name := request.POST.get("new_name", "").strip():
        # Runs of one selection may belong to several teams.
        owner_id = runs[0].owner_id
        require_role(request.user, Role.EDITOR, owner_id)
        return create_dataset({**parse_dataset({"name": name}), "owner_id": owner_id})
    if not request.POST.get("dataset"):
        raise ApiError(400, "Choose a dataset, or enter the name of a new one.", "no_dataset")
    return get_page_dataset(request, request.POST["dataset"], Role.EDITOR)
