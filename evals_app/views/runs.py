"""The page that adds a run to a dataset."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from access_app.caller import Caller
from access_app.permissions import has_role
from access_app.role import Role
from agents_app.configuration.schema import ConfigError
from evals_app.datasets.changes import add_items
from evals_app.datasets.from_runs import item_of_run
from evals_app.models import Dataset
from evals_app.views.lookups import get_page_dataset, json_of_text, text_of_json
from runs_app.models import AgentRun


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def add_to_dataset(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Ask for a dataset and for changes of the item, then add a run to it."""
    run = get_object_or_404(AgentRun.objects.for_user(request.user), pk=run_id)
    item = item_of_run(run, with_calls=request.POST.get("calls") == "yes")
    problem = ""
    if request.method == "POST":
        dataset = get_page_dataset(request, request.POST.get("dataset", ""), Role.EDITOR)
        item["input"] = json_of_text(request.POST.get("input", "")) or item["input"]
        item["ground_truth"] = json_of_text(request.POST.get("ground_truth", ""))
        try:
            add_items(dataset, [item])
        except ConfigError as error:
            problem = " ".join(f"{issue.field}: {issue.message}" for issue in error.issues)
        else:
            messages.success(request, f"Added to {dataset.name} as version {dataset.version}.")
            return redirect("evals:dataset", dataset.pk)
    context = {
        "nav": "runs",
        "run": run,
        "datasets": editable_datasets(request.user),
        "problem": problem,
        "input": text_of_json(item["input"]),
        "ground_truth": text_of_json(item["ground_truth"]),
    }
    return render(request, "evals/add_run.html", context, status=422 if problem else 200)


def editable_datasets(user: Caller) -> list[Dataset]:
    """Return the datasets to which a user may add items."""
    return [row for row in Dataset.objects.for_user(user) if has_role(user, Role.EDITOR, row.owner_id)]
