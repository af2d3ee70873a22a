"""Pages of items: add, edit in place or with all fields, history, restore, delete and purge."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import trigger_client_event

from access_app.permissions import granted_covers
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.web.dialogs import is_htmx, redirect_page, render_dialog, vary_on_htmx
from agents_app.configuration.schema import ConfigError
from agents_app.views.access import GET_POST
from evals_app.datasets.changes import add_items, change_item, delete_items, lock_dataset, restore_item
from evals_app.datasets.differences import describe_changes
from evals_app.datasets.purging import purge_item
from evals_app.datasets.schema import parse_item, parse_item_change
from evals_app.forms.datasets import ItemForm
from evals_app.models import Dataset, DatasetVersion, ItemVersion
from evals_app.views.item_rows import item_row
from evals_app.views.lookups import ROWS_PER_PAGE, get_page_dataset

CHANGED_MEANWHILE = "Somebody changed this item meanwhile. Compare it with your text, then save again."


def get_page_item(dataset: Dataset, item_id: UUID) -> ItemVersion:
    """Return the current version of an item. Raise Http404 if it is not there."""
    rows = ItemVersion.objects.current().filter(dataset=dataset, item_id=item_id)
    version = rows.select_related("item").first()
    if version is None:
        raise Http404
    return version


@require_http_methods(GET_POST)
@login_required
def add_item(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """Add an item, or show the form with its errors."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    form = ItemForm(request.POST or None)
    if form.is_bound and form.is_valid():
        try:
            add_items(dataset, [parse_item({"input": None, **form.body})])
            messages.success(request, f"Item added as version {dataset.version}.")
            # To the input of the next item, which has the focus then.
            return redirect(f"{reverse('evals:dataset', args=[dataset.pk])}#new-input")
        except ConfigError as error:
            form.add_issues(error)
        except ApiError as error:
            form.add_error(None, error.error)
    context = {"nav": "evals", "dataset": dataset, "form": form}
    return render(request, "evals/item.html", context, status=422 if form.errors else 200)


@require_http_methods(GET_POST)
@login_required
def edit_item(request: HttpRequest, dataset_id: str, item_id: UUID) -> HttpResponse:
    """Edit an item: in its row of the table for htmx, else on a page with all fields."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    item = get_page_item(dataset, item_id)
    form = ItemForm(request.POST if request.method == "POST" else None, version=item)
    if form.is_bound and form.is_valid() and save_item(request, dataset, item, form):
        message = f"Saved as version {dataset.version}."
        if not is_htmx(request):
            messages.success(request, message)
            return redirect("evals:dataset", dataset.pk)
        response = render_row(request, dataset, get_page_item(dataset, item_id), is_saved=True)
        return trigger_client_event(response, "item-saved", {"target": "body", "message": message})
    context = {"nav": "evals", "dataset": dataset, "item": item, "form": form}
    template = "evals/_item_form.html" if is_htmx(request) else "evals/item.html"
    response = render(request, template, context, status=422 if form.errors else 200)
    vary_on_htmx(response)
    return response


def save_item(request: HttpRequest, dataset: Dataset, item: ItemVersion, form: ItemForm) -> bool:
    """Save a valid form. Return False with errors in the form if the item cannot be saved so."""
    # It finds a change since the form was opened. The check under the lock finds one during this request.
    is_based_on_item = request.POST.get("base", str(item.from_version)) == str(item.from_version)
    try:
        with transaction.atomic():
            lock_dataset(dataset.pk)  # nobody else changes the item after the check
            if is_based_on_item and get_page_item(dataset, item.item_id) == item:
                change_item(dataset, item.item_id, parse_item_change(form.body))
            else:
                form.add_error(None, CHANGED_MEANWHILE)
    except ConfigError as error:
        form.add_issues(error)
    except ApiError as error:
        form.add_error(None, error.error)
    return not form.errors


@require_safe
@login_required
def show_item(request: HttpRequest, dataset_id: str, item_id: UUID) -> HttpResponse:
    """Render the row of an item, after its editing was cancelled."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    # For editors alone: the row has the buttons that edit the item.
    return render_row(request, dataset, get_page_item(dataset, item_id))


def render_row(request: HttpRequest, dataset: Dataset, item: ItemVersion, *, is_saved: bool = False) -> HttpResponse:
    context = {"dataset": dataset, "row": item_row(item), "may_edit": True, "is_saved": is_saved}
    return render(request, "evals/_item_row.html", context)


@require_POST
@login_required
def delete_item(request: HttpRequest, dataset_id: str, item_id: UUID) -> HttpResponse:
    """Delete an item. Earlier versions of the dataset keep it, and it can be restored."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    if delete_items(dataset, [item_id]):
        # What was there right before: somebody may have changed the item since the dataset was read.
        undo = reverse("evals:restore_item", args=[dataset.pk, item_id, dataset.version - 1])
        messages.success(request, f"Item deleted in version {dataset.version}.", extra_tags=undo)
    return redirect("evals:dataset", dataset.pk)


@require_POST
@login_required
def restore(request: HttpRequest, dataset_id: str, item_id: UUID, number: int) -> HttpResponse:
    """Make an item what it was at a version of its dataset."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    try:
        restore_item(dataset, item_id, number)
    except ApiError as error:
        if error.status == 404:
            raise Http404 from None
        messages.error(request, error.error)
    else:
        messages.success(request, f"Item restored as version {dataset.version}.")
    return redirect_page(request, reverse("evals:dataset", args=[dataset.pk]))


@require_safe
@login_required
def item_history(request: HttpRequest, dataset_id: str, item_id: UUID) -> HttpResponse:
    """Show the versions of an item with their differences, newest first."""
    dataset = get_page_dataset(request, dataset_id)
    versions = ItemVersion.objects.filter(dataset=dataset, item_id=item_id).select_related("item")
    page = Paginator(versions.order_by("-from_version"), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    rows = list(page)
    if not rows:
        raise Http404
    numbers = [row.from_version for row in rows]
    authors = DatasetVersion.objects.filter(dataset=dataset, version__in=numbers)
    context = {
        "nav": "evals",
        "dataset": dataset,
        "item": rows[0].item,
        "page": page,
        "changes": describe_changes(dataset, rows),
        "authors": {row.version: row for row in authors},
        "may_edit": granted_covers(request.user, Role.EDITOR, dataset.granted),
        "may_purge": granted_covers(request.user, Role.PUBLISHER, dataset.granted),
    }
    return render(request, "evals/item_history.html", context)


@require_http_methods(GET_POST)
@login_required
def purge(request: HttpRequest, dataset_id: str, item_id: UUID) -> HttpResponse:
    """Redact an item in all its versions and results, after a question."""
    dataset = get_page_dataset(request, dataset_id, Role.PUBLISHER)
    item = dataset.items.filter(pk=item_id).first()
    if item is None:
        raise Http404
    back = reverse("evals:item_history", args=[dataset.pk, item_id])
    if request.method == "POST":
        purge_item(dataset, item, request.user)
        messages.success(request, "The item was purged.")
        return redirect_page(request, back)
    context = {
        "nav": "evals",
        "title": "Purge this item?",
        "body": "evals/_purge_item.html",
        "version_count": item.versions.count(),
        "result_count": item.results.count(),
        "buttons": [{"label": "Purge the item", "kind": "danger"}],
        "back": back,
    }
    return render_dialog(request, context)
