"""The base class of API views.

Only views and URLs may import it: loading DRF's views imports the parsers and renderers that the settings name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from agentcms.errors import BadRequest, NotFound
from agentcms.wire.names import to_wire
from agentcms.wire.validation import find_faults


class JSONView(APIView):
    """An API view whose path holds nothing that a database would choke on.

    A request that was answered leaves nothing in a circle, so all of it is freed at once: left to the garbage
    collector, the views and requests of a thousand calls stopped everybody for 70 ms.
    """

    http_method_names = ["get", "post", "patch", "delete", "head"]  # what `Allow` names

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "get" in vars(cls) and "head" not in vars(cls):  # or Django gives each view its own, bound to itself
            cls.head = cls.get  # type: ignore[attr-defined]

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        self.request.parser_context.clear()  # it names the view, and the view the request
        del self.response  # that of an error names the view too
        return response

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        validate_path_params(kwargs)


def validate_path_params(arguments: Mapping[str, Any]) -> None:
    """Refuse a NUL or half of a surrogate pair in what the path captured."""
    found = [
        fault for name, value in arguments.items() if isinstance(value, str) for fault in find_faults(value, name)
    ]
    if found:
        raise BadRequest("path parameters", [(to_wire(name), message) for name, message in found])


class ApiNotFoundView(JSONView):
    """The last route below /api: a JSON 404 for any method, with DEBUG too, where Django skips its handlers."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound()
