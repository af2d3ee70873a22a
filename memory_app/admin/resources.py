"""Admin of resources: export and deletion of a person's data."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.auth.models import User
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from access_app.admin_base.confirmation import confirmation_page
from access_app.admin_base.staff_access import ReadOnlyAdmin
from agentcms.errors import ApiError
from agentcms.plural import pluralize
from jobs_app.models import Job
from memory_app.models import Resource
from memory_app.realms import describe_realm
from runs_app.privacy.jobs import start_forgetting, start_resource_export


@admin.register(Resource)
class ResourceAdmin(ReadOnlyAdmin):
    """Resources without the texts of their memory. Only superusers see them."""

    list_display = ("key", "realm_name", "thread_count", "working_revision", "created_at", "updated_at")
    list_select_related = ("user",)
    list_filter = ("updated_at",)
    search_fields = ("key", "realm")
    fields = ("key", "realm_name", "user", "thread_count", "working_revision", "created_at", "updated_at")
    readonly_fields = ("realm_name", "thread_count")
    actions = ("export_data", "forget_data")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return super().has_module_permission(request) and request.user.is_superuser

    def get_queryset(self, request: HttpRequest) -> QuerySet[Resource]:
        return Resource.objects.annotate(threads_counted=Count("threads"))

    @admin.display(description="Realm", ordering="realm")
    def realm_name(self, resource: Resource) -> str:
        return describe_realm(str(resource.realm), resource.user.get_username() if resource.user else "")

    @admin.display(description="Threads", ordering="threads_counted")
    def thread_count(self, resource: Any) -> int:
        return int(resource.threads_counted)

    @admin.action(description="Export all data of the selected resources")
    def export_data(self, request: HttpRequest, resources: QuerySet[Resource]) -> None:
        for number, resource in enumerate(resources):
            try:
                job = start_resource_export(request.user, str(resource.realm), str(resource.key))
            except ApiError as error:  # too many jobs or files
                begun = f"{number} of {pluralize(len(resources), 'export')} began."
                messages.error(request, f"{begun} {error.error}")
                return
            LogEntry.objects.log_actions(request.user.pk or 0, [resource], CHANGE, "Exported.", single_object=True)
            messages.info(request, export_message(resource, job))

    @admin.action(description="Delete all data of the selected resources")
    def forget_data(self, request: HttpRequest, resources: QuerySet[Resource]) -> HttpResponse | None:
        if "confirmed" not in request.POST:
            template = "memory_app/resource/forget"
            return confirmation_page(self, request, template, "Delete all data?", resources=resources)
        for resource in resources:
            start_forgetting(cast(User, request.user), str(resource.realm), str(resource.key))
            # An entry of the admin log names the resource. The job gives it another name at its end.
            LogEntry.objects.log_actions(request.user.pk or 0, [resource], DELETION, "Forgotten.", single_object=True)
        messages.success(request, "Jobs delete the data.")
        return None


def export_message(resource: Resource, job: Job) -> SafeString:
    """Return where the export of a resource is: the job that writes it, and its file."""
    return format_html(
        'The export of {} began. See its <a href="{}">job</a>. Once it is done, <a href="{}">download the file</a>.',
        resource,
        reverse("admin:jobs_app_job_change", args=[job.pk]),
        reverse("api-job-file", args=[job.pk]),
    )
