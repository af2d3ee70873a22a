"""Admin of datasets: figures. Opening the items of one is recorded in the admin log."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from access_app.admin_base.lists import OwnerFilter, TeamColumnMixin, list_text
from access_app.admin_base.staff_access import ReadOnlyAdmin
from access_app.permissions import has_role
from access_app.role import Role
from agentcms.errors import ApiError
from evals_app.datasets.changes import reject_move
from evals_app.datasets.settings import change_settings
from evals_app.models import Dataset
from evals_app.views.item_rows import item_row

ITEMS_SHOWN = 200
OPENED_MESSAGE = "Opened the items of this dataset."


def archive_if_unmoved(dataset: Dataset, archived: bool) -> bool:
    """Archive or unarchive a dataset. Return False if it was deleted meanwhile, or moved to another team."""
    try:
        with transaction.atomic():
            # Not `update()`: a dataset that is archived already keeps its date.
            reject_move(change_settings(dataset.pk, {"archived": archived}), dataset)
    except ApiError:
        return False
    return True


@admin.register(Dataset)
class DatasetAdmin(TeamColumnMixin, ReadOnlyAdmin):
    """Datasets without their items. Their pages change them, because each change is a version."""

    list_display = ("name", "id", "team", "item_count", "version", "is_archived", "updated_at")
    list_filter = (OwnerFilter, "updated_at")
    search_fields = ("id", "name", "description")
    fields = (
        *("name", "id", "description", "team", "item_count", "version", "experiment_count", "scorers"),
        *("agents", "tag_names", "input_schema", "ground_truth_schema", "request_context_schema"),
        *("archived_at", "created_at", "updated_at", "page", "items"),
    )
    readonly_fields = ("team", "experiment_count", "scorers", "agents", "tag_names", "page", "items")
    actions = ("archive", "unarchive")
    action_roles: ClassVar = dict.fromkeys(actions, Role.EDITOR)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Dataset]:
        return Dataset.objects.for_user(request.user)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.items_view)
        return [path("<path:object_id>/items/", view, name="evals_app_dataset_items"), *super().get_urls()]

    def items_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the first items of a dataset, and record who opened them."""
        dataset = self.get_object(request, unquote(object_id)) if self.has_view_permission(request) else None
        if dataset is None:
            raise Http404
        # `or 0` is for the type checker: only staff come here, and they have a primary key.
        LogEntry.objects.log_actions(request.user.pk or 0, [dataset], CHANGE, OPENED_MESSAGE, single_object=True)
        rows = dataset.item_versions.current().select_related("item").order_by("item_id")[:ITEMS_SHOWN]
        context = {
            **self.admin_site.each_context(request),
            "title": f"Items of {dataset.name}",
            "opts": self.opts,
            "dataset": dataset,
            "rows": [item_row(row) for row in rows],
        }
        return TemplateResponse(request, "admin/evals_app/dataset/items.html", context)

    @admin.action(description="Archive selected datasets")
    def archive(self, request: HttpRequest, datasets: QuerySet[Dataset]) -> None:
        self._set_archived(request, datasets, archived=True)

    @admin.action(description="Unarchive selected datasets")
    def unarchive(self, request: HttpRequest, datasets: QuerySet[Dataset]) -> None:
        self._set_archived(request, datasets, archived=False)

    def _set_archived(self, request: HttpRequest, datasets: QuerySet[Dataset], *, archived: bool) -> None:
        rows = [
            row
            for row in datasets
            if has_role(request.user, Role.EDITOR, row.owner_id) and archive_if_unmoved(row, archived)
        ]
        if rows:
            verb = "Archived." if archived else "Unarchived."
            LogEntry.objects.log_actions(request.user.pk or 0, rows, CHANGE, verb)
        state = "archived" if archived else "unarchived"
        hint = f"Only an editor of its team can have a dataset {state}."
        self.report_action(request, len(rows), len(datasets), "dataset", f"{state}.", hint)

    @admin.display(description="archived", boolean=True)
    def is_archived(self, dataset: Dataset) -> bool:
        return dataset.archived_at is not None

    @admin.display(description="experiments")
    def experiment_count(self, dataset: Dataset) -> int:
        return dataset.experiments.count()

    @admin.display(description="scorers of experiments that name none")
    def scorers(self, dataset: Dataset) -> str:
        return list_text(dataset.scorer_keys)

    @admin.display(description="agents that the dataset is for")
    def agents(self, dataset: Dataset) -> str:
        return list_text(dataset.target_ids)

    @admin.display(description="tags")
    def tag_names(self, dataset: Dataset) -> str:
        return list_text(dataset.tags)

    @admin.display(description="page")
    def page(self, dataset: Dataset) -> str:
        return format_html('<a href="{}">Open</a>', reverse("evals:dataset", args=[dataset.pk]))

    # A link, because opening the items is logged. The page of the dataset itself is not.
    @admin.display(description="items")
    def items(self, dataset: Dataset) -> str:
        url = reverse("admin:evals_app_dataset_items", args=[dataset.pk])
        return format_html('<a href="{}">Open the items</a> This is recorded in the admin log.', url)
