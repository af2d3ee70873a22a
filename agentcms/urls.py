"""Every address of the application."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from access_app.views import SignIn
from agentcms.api_schema_views import AgentSchemaView, DocsView, SchemaView
from agentcms.figures import FiguresView
from agentcms.json_views import NoSuchRoute

handler400 = "agentcms.handlers.handler400"
handler403 = "agentcms.handlers.handler403"
handler404 = "agentcms.handlers.handler404"
handler500 = "agentcms.handlers.handler500"

api_urlpatterns: list[Any] = [
    # First what is asked for most.
    path("", include("agents_app.urls_api")),
    path("", include("versions_app.urls_api")),
    path("schema", SchemaView.as_view(), name="api-schema"),
    path("docs", DocsView.as_view(), name="api-docs"),
    path("stored/agent-schema", AgentSchemaView.as_view(), name="api-agent-schema"),
    path("", include("jobs_app.urls_api")),
    path("", include("runs_app.urls_api")),
    re_path(r"", NoSuchRoute.as_view()),
]

urlpatterns = [
    path("api/", include(api_urlpatterns)),
    path("metrics", FiguresView.as_view(), name="metrics"),
    path("sign-in", SignIn.as_view(), name="login"),
    path("sign-out", LogoutView.as_view(), name="logout"),
    path("admin/login/", RedirectView.as_view(pattern_name="login", query_string=True)),  # one door, one throttle
    path("admin/", admin.site.urls),
    path("", include("access_app.urls")),
    path("", include("agents_app.urls")),
    path("", include("versions_app.urls")),
    path("", include("versions_app.urls_exchange")),
    path("", include("runs_app.urls")),
]
