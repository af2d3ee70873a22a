"""Every address of the application."""

from typing import Any

from django.contrib import admin
from django.urls import include, path, re_path

from agentcms.json_views import NoSuchRoute

handler400 = "agentcms.handlers.handler400"
handler403 = "agentcms.handlers.handler403"
handler404 = "agentcms.handlers.handler404"
handler500 = "agentcms.handlers.handler500"

api_urlpatterns: list[Any] = [
    path("", include("agents_app.urls_api")),
    path("", include("versions_app.urls_api")),
    re_path(r"", NoSuchRoute.as_view()),
]

urlpatterns = [
    path("api/", include(api_urlpatterns)),
    path("admin/", admin.site.urls),
    path("", include("versions_app.urls")),
]
