"""The URLs of the application."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from access_app.views import SignInView
from agentcms.api.views import ApiNotFoundView
from agentcms.checks.variables import engine_errors
from agentcms.observability.metrics_view import MetricsView
from agentcms.openapi.views import AgentSchemaView, DocsView, SchemaView

handler400 = "agentcms.web.error_handlers.bad_request"
handler403 = "agentcms.web.error_handlers.permission_denied"
handler404 = "agentcms.web.error_handlers.page_not_found"
handler500 = "agentcms.web.error_handlers.server_error"

api_urlpatterns: list[Any] = [
    # Ordered by the number of requests: Django tries the patterns in turn.
    path("", include("agents_app.api.urls")),
    path("", include("versions_app.api.urls")),
    path("schema", SchemaView.as_view(), name="api-schema"),
    path("docs", DocsView.as_view(), name="api-docs"),
    path("stored/agent-schema", AgentSchemaView.as_view(), name="api-agent-schema"),
    path("", include("jobs_app.api.urls")),
    path("", include("runs_app.api.urls")),
    path("", include("memory_app.api.urls")),
    path("", include("tools_app.api.urls")),
    path("", include("knowledge_app.api.urls")),
    path("", include("evals_app.api.urls")),
    # Last, because it matches every path.
    re_path(r"", ApiNotFoundView.as_view()),
]

urlpatterns = [
    path("api/", include(api_urlpatterns)),
    path("metrics", MetricsView.as_view(), name="metrics"),
    path("sign-in", SignInView.as_view(), name="login"),
    path("sign-out", LogoutView.as_view(), name="logout"),
    path(
        "admin/login/", RedirectView.as_view(pattern_name="login", query_string=True)
    ),  # one sign-in page, one throttle
    path("admin/password_change/", RedirectView.as_view(pattern_name="account:password")),  # one page for it, too
    path("admin", RedirectView.as_view(pattern_name="admin:index")),  # the admin itself does this for staff only
    path("admin/", admin.site.urls),
    path("", include("access_app.urls")),
    path("", include("agents_app.urls")),
    path("", include("versions_app.urls")),
    path("", include("versions_app.urls_exchange")),
    path("", include("runs_app.urls")),
    path("", include("memory_app.urls")),
    path("", include("evals_app.urls")),
    path("", include("knowledge_app.urls")),
]

# Where its package or a key is missing, the checks of the environment say so. An import that fails would hide that.
if settings.RUN_ENGINE == "inngest" and not any(engine_errors()):
    from runs_app.engine.runners.inngest import build_inngest_url

    urlpatterns.insert(1, build_inngest_url())
