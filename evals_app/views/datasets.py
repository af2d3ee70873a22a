"""Pages of datasets: the list, and one as a table whose items are edited in place."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from access_app.permissions import granted_covers, require_role
from access_app.role import Role
from agentcms.db.text_conditions import contains_text
from agentcms.web.list_state import archived_matches_note, encode_query, search_text
from agentcms.web.template_context import TemplateContext
from agents_app.views.access import GET_POST, selectable_owners
from evals_app.exchange.formats import FileFormat
from evals_app.forms.datasets import NewDatasetForm
from evals_app.models import Dataset, Experiment, ItemVersion
from evals_app.views.item_rows import item_row
from evals_app.views.lookups import ROWS_PER_PAGE, earlier_version, get_page_dataset, may_edit


@require_http_methods(GET_POST)
@login_required
def dataset_list(request: HttpRequest) -> HttpResponse:
    """List the datasets, or create one."""
    owners = selectable_owners(request.user, Role.EDITOR)
    form = NewDatasetForm(request.POST if request.method == "POST" else None, owners)
    if form.is_bound:
        require_role(request.user, Role.EDITOR, request.POST.get("owner_id", ""))
        if form.is_valid() and (created := form.save()):
            return redirect("evals:dataset", created.pk)
    context = {**list_context(request), "owners": owners, "form": form}
    return render(request, "evals/datasets.html", context, status=422 if form.is_bound else 200)


def list_context(request: HttpRequest) -> TemplateContext:
    """Return the template context of the datasets that a search finds."""
    archived = request.GET.get("archived") == "yes"
    matching = Dataset.objects.for_user(request.user)
    if search := search_text(request.GET):
        matching = matching.filter(contains_text("name", search))
    datasets = matching.filter(archived_at__isnull=not archived)
    page: Page[Dataset] = Paginator(datasets, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    query = encode_query(q=search, archived="yes" if archived else "")
    # Otherwise a search that only archived datasets match would say that none does.
    count = matching.exclude(archived_at=None).count() if search and not archived and not page else 0
    return {
        "nav": "evals",
        "page": page,
        "search": search,
        "archived": archived,
        "query": query,
        "archived_note": archived_matches_note(count, "dataset"),
        "archived_url": f"?{encode_query(q=search, archived='yes')}",
    }


@require_safe
@login_required
def dataset(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """Show a dataset at its current or an earlier version, with its experiments."""
    row = get_page_dataset(request, dataset_id)
    old_version = earlier_version(row, request.GET.get("version", ""))
    items = ItemVersion.objects.filter(dataset=row).select_related("item").order_by("item_id")
    items = items.current() if old_version is None else items.at_version(old_version)
    if search := search_text(request.GET):
        items = items.filter(text__contains=search.casefold())
    page: Page[ItemVersion] = Paginator(items, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "nav": "evals",
        "dataset": row,
        "page": page,
        "rows": [item_row(item) for item in page],
        "search": search,
        "query": encode_query(q=search, version="" if old_version is None else str(old_version)),
        "old_version": old_version,
        # A change applies to the current items, and an earlier version is only a record of others.
        "may_edit": may_edit(request, row) and old_version is None,
        "may_delete": granted_covers(request.user, Role.PUBLISHER, row.granted),
        "versions": row.versions.all()[:10],
        "experiments": Experiment.objects.filter(dataset=row).with_target_names(request.user)[:20],
        "formats": FileFormat.choices,
    }
    return render(request, "evals/dataset.html", context)
