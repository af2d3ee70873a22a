"""Routes for tests of `agentcms` without the apps."""

from django.http import HttpResponse
from django.urls import path, re_path
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.api.renderers import PreEncodedJSON
from agentcms.api.views import ApiNotFoundView, JSONView

handler400 = "agentcms.web.error_handlers.bad_request"
handler403 = "agentcms.web.error_handlers.permission_denied"
handler404 = "agentcms.web.error_handlers.page_not_found"
handler500 = "agentcms.web.error_handlers.server_error"

RAISED = {}


class Open(JSONView):
    authentication_classes = ()
    permission_classes = ()


class Echo(Open):
    def get(self, request):
        return Response(PreEncodedJSON(b'{"raw": true}'))

    def post(self, request):
        return Response({"got": request.data}, status=201)

    def patch(self, request):
        return Response(json_object_body(request))


class Rows(Open):
    def get(self, request):
        with QueryParams(request) as query:
            paging = query.paging(100)
            order = query.order_by(("createdAt", "name"), OrderBy("createdAt"))
            metadata = query.json_object("metadata")
            strict = query.boolean("strict")
        body = page_payload("rows", [], 150, paging.page, paging.per_page)
        return Response({**body, "order": [order.field, order.direction], "metadata": metadata, "strict": strict})


class Named(Open):
    def get(self, request, agent_id):
        return Response({"id": agent_id})


class Raising(Open):
    def get(self, request):
        raise RAISED["exception"]


class Slow(BaseThrottle):
    def allow_request(self, request, view):
        return False

    def wait(self):
        return 1.2


class Throttled(Open):
    throttle_classes = (Slow,)

    def get(self, request):
        return Response({})


def raising(request):
    """A plain Django view, where DRF catches nothing."""
    raise RAISED["exception"]


urlpatterns = [
    path("api/echo", Echo.as_view()),
    path("api/rows", Rows.as_view()),
    path("api/named/<str:agent_id>", Named.as_view()),
    path("api/raising", Raising.as_view()),
    path("api/throttled", Throttled.as_view()),
    path("api/plain", raising),
    path("page", lambda request: HttpResponse("page")),
    path("plain", raising),
    re_path(r"^api/last(/.*)?$", ApiNotFoundView.as_view()),
]
