"""Pages that change a dataset as a whole, and that show what its versions changed."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access_app.role import Role
from agentcms.errors import Conflict
from agentcms.web.dialogs import (
    redirect_page,
    reject_replaced_row,
    render_dialog,
    replaced_reason,
    row_stamp,
    with_row_stamp,
)
from agentcms.web.post_transactions import atomic_post
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError
from agents_app.views.access import GET_POST
from evals_app.datasets.changes import lock_dataset
from evals_app.datasets.deletion import GATE_MESSAGE, delete_with_experiments
from evals_app.datasets.differences import describe_changes
from evals_app.datasets.schema import parse_dataset_change
from evals_app.datasets.settings import change_settings, find_unknown_scorers
from evals_app.forms.datasets import DatasetForm
from evals_app.models import Dataset, Experiment, ItemVersion
from evals_app.views.lookups import ROWS_PER_PAGE, get_page_dataset, list_gates


@require_http_methods(GET_POST)
@login_required
@atomic_post
def edit_settings(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """Change the name, the description, the schemas, the scorers and the agents of a dataset."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    if request.method == "POST":
        lock_dataset(dataset.pk)  # or a change between the check of the form and this one would be lost
        dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    form = DatasetForm(request.POST if request.method == "POST" else None, dataset)
    if form.is_bound and form.is_valid():
        try:
            columns = parse_dataset_change(form.body)
            # The page asks for agents. A dataset for workflows or scorers, which the API creates, keeps its type.
            if columns["target_ids"] and not dataset.target_type:
                columns["target_type"] = Experiment.Target.AGENT
            changed = change_settings(dataset.pk, columns)
            unknown = " ".join(name.message for name in find_unknown_scorers(changed))
            messages.success(request, f"The settings were saved. {unknown}".rstrip())
            return redirect("evals:dataset", dataset.pk)
        except ConfigError as error:
            form.add_issues(error)
    context = {"nav": "evals", "dataset": dataset, "form": form}
    return render(request, "evals/settings.html", context, status=422 if form.errors else 200)


@transaction.atomic
def change_as_editor(request: HttpRequest, dataset_id: str, columns: JSONObject) -> Dataset:
    """Change settings of a dataset. Raise RoleRequired, RowReplaced, or Http404 if the user no longer sees it."""
    changed = change_settings(dataset_id, columns)
    # Checked again under the lock: the dataset may have moved to a team in which the user may not edit.
    reject_replaced_row(request, get_page_dataset(request, dataset_id, Role.EDITOR))
    return changed


@require_POST
@login_required
def archive(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """Archive a dataset: lists leave it out, and everything else stays."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    change_as_editor(request, dataset.pk, {"archived": True})
    undo = with_row_stamp(reverse("evals:unarchive", args=[dataset.pk]), dataset)
    # The tags of a message are the URL of its Undo button.
    messages.success(request, f"{dataset.name} was archived.", extra_tags=undo)
    return redirect("evals:datasets")


@require_POST
@login_required
def unarchive(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """List an archived dataset again."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    change_as_editor(request, dataset.pk, {"archived": False})
    messages.success(request, f"{dataset.name} was unarchived.")
    return redirect_page(request, reverse("evals:dataset", args=[dataset.pk]))


@require_http_methods(GET_POST)
@login_required
def delete_dataset(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """Delete a dataset with its items and experiments, after a question."""
    dataset = get_page_dataset(request, dataset_id, Role.PUBLISHER)
    back = reverse("evals:dataset", args=[dataset.pk])
    why_not = replaced_reason(request, dataset) or (GATE_MESSAGE if dataset.gates.exists() else "")
    if request.method == "POST" and not why_not:
        try:
            delete_with_experiments(dataset)
        except Conflict as error:  # a gate was added meanwhile, or the dataset moved to another team
            why_not = error.error
        else:
            messages.success(request, f"{dataset.name} was deleted.")
            return redirect_page(request, reverse("evals:datasets"))
    context = {
        "nav": "evals",
        "title": f"Delete “{dataset.name}”?",
        "body": "evals/_delete_dataset.html",
        "row_stamp": row_stamp(dataset),
        "dataset": dataset,
        "experiment_count": dataset.experiments.count(),
        "gates": list_gates(request, dataset.gates.all()),
        "why_not": why_not,
        "buttons": [{"label": f"Delete {dataset.name}", "kind": "danger"}],
        "back": back,
    }
    return render_dialog(request, context, 409 if request.method == "POST" else 200)


@require_safe
@login_required
def version_list(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """List the versions of a dataset, newest first."""
    dataset = get_page_dataset(request, dataset_id)
    page = Paginator(dataset.versions.all(), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "evals/versions.html", {"nav": "evals", "dataset": dataset, "page": page})


@require_safe
@login_required
def version_changes(request: HttpRequest, dataset_id: str, number: int) -> HttpResponse:
    """Show the items that a version of a dataset added, changed or deleted."""
    dataset = get_page_dataset(request, dataset_id)
    version = get_object_or_404(dataset.versions, version=number)
    rows = ItemVersion.objects.filter(dataset=dataset, from_version=number).select_related("item").order_by("item_id")
    page = Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "nav": "evals",
        "dataset": dataset,
        "version": version,
        "page": page,
        "changes": describe_changes(dataset, list(page)),
    }
    return render(request, "evals/version.html", context)
