"""Pages of datasets: the list, and one as a table whose items are edited in place."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access_app.permissions import require_role
from access_app.role import Role
from agents_app.configuration.schema import ConfigError
from agents_app.views.access import selectable_owners
from evals_app.datasets.changes import add_items, change_item, delete_items
from evals_app.datasets.creation import create_dataset
from evals_app.datasets.schema import parse_dataset, parse_item
from evals_app.models import Dataset, ItemVersion
from evals_app.views.lookups import ROWS_PER_PAGE, get_page_dataset, json_of_text, may_edit, text_of_json


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def dataset_list(request: HttpRequest) -> HttpResponse:
    """List the datasets, or create one."""
    owners = selectable_owners(request.user, Role.EDITOR)
    if request.method == "POST":
        owner_id = request.POST.get("owner_id", "")
        require_role(request.user, Role.EDITOR, owner_id)
        try:
            columns = parse_dataset({"name": request.POST.get("name", "")})
        except ConfigError as error:
            messages.error(request, " ".join(issue.message for issue in error.issues))
            return redirect("evals:datasets")
        return redirect("evals:dataset", create_dataset({**columns, "owner_id": owner_id}).pk)
    datasets = Dataset.objects.for_user(request.user).filter(archived_at=None)
    if search := request.GET.get("q", ""):
        datasets = datasets.filter(name__icontains=search)
    page: Any = Paginator(datasets, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "evals/datasets.html", {"nav": "evals", "page": page, "owners": owners, "search": search})


@require_safe
@login_required
def dataset(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """Show a dataset at its current or an earlier version, with its experiments."""
    row = get_page_dataset(request, dataset_id)
    version_text = request.GET.get("version", "")
    is_old = version_text.isdecimal() and len(version_text) < 10 and int(version_text) != row.version
    items = ItemVersion.objects.filter(dataset=row).select_related("item").order_by("item_id")
    items = items.at_version(int(version_text)) if is_old else items.current()
    if search := request.GET.get("q", ""):
        items = items.filter(text__contains=search.casefold())
    page: Any = Paginator(items, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "nav": "evals",
        "dataset": row,
        "page": page,
        "rows": [item_row(item) for item in page],
        "search": search,
        "old_version": int(version_text) if is_old else None,
        "may_edit": may_edit(request, row) and not is_old,
        "versions": row.versions.all()[:10],
        "experiments": row.experiments.all()[:20],
    }
    return render(request, "evals/dataset.html", context)


def item_row(item: ItemVersion) -> dict[str, Any]:
    return {
        "item": item,
        "input": text_of_json(item.input),
        "ground_truth": text_of_json(item.ground_truth),
        "source": (item.source or {}).get("type", ""),
    }


@require_POST
@login_required
def save_item(request: HttpRequest, dataset_id: str, item_id: UUID | None = None) -> HttpResponse:
    """Add an item, or change its input and ground truth."""
    row = get_page_dataset(request, dataset_id, Role.EDITOR)
    body = {"input": json_of_text(request.POST.get("input", ""))}
    body["groundTruth"] = json_of_text(request.POST.get("ground_truth", ""))
    if body["input"] is None:
        messages.error(request, "The input is blank. Enter a text or JSON.")
        return redirect("evals:dataset", row.pk)
    try:
        columns = parse_item(body)
        if item_id is None:
            add_items(row, [columns])
        else:
            change_item(row, item_id, columns)
    except ConfigError as error:
        messages.error(request, " ".join(f"{issue.field}: {issue.message}" for issue in error.issues))
    else:
        messages.success(request, f"Saved as version {row.version}.")
    return redirect("evals:dataset", row.pk)


@require_POST
@login_required
def delete_item(request: HttpRequest, dataset_id: str, item_id: UUID) -> HttpResponse:
    """Delete an item. Earlier versions of the dataset keep it."""
    row = get_page_dataset(request, dataset_id, Role.EDITOR)
    if delete_items(row, [item_id]):
        messages.success(request, f"Deleted in version {row.version}. Earlier versions keep the item.")
    return redirect("evals:dataset", row.pk)


@require_safe
@login_required
def item_history(request: HttpRequest, dataset_id: str, item_id: UUID) -> HttpResponse:
    """Show the versions of an item, newest first."""
    row = get_page_dataset(request, dataset_id)
    versions = ItemVersion.objects.filter(dataset=row, item_id=item_id).order_by("-from_version")
    rows = [item_row(version) for version in versions[:200]]
    return render(request, "evals/item_history.html", {"nav": "evals", "dataset": row, "rows": rows})
