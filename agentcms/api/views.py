"""The base class of API views.

Import it only from views and URLs: `rest_framework.views` loads the parsers and renderers of the settings.
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
from agentcms.wire.validation import find_json_faults


class JSONView(APIView):
    """A base class of API views that validates its path parameters.

    It breaks the reference cycles of a finished request, so that its memory is freed at once. The garbage collector
    would stop all threads to free them.
    """

    http_method_names = ["get", "post", "patch", "delete", "head"]  # the header `Allow` lists these

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Django would add a `head` bound to the view to each view: a reference cycle.
        if "get" in vars(cls) and "head" not in vars(cls):
            cls.head = cls.get  # type: ignore[attr-defined]

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        self.request.parser_context.clear()  # it refers to the view, and the view to the request
        del self.response  # the response of an error refers to the view too
        return response

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        validate_path_params(kwargs)


def validate_path_params(arguments: Mapping[str, Any]) -> None:
    """Raise BadRequest if a parameter of the path has a NUL or a lone surrogate: a database rejects them."""
    faults = [
        fault for name, value in arguments.items() if isinstance(value, str) for fault in find_json_faults(value, name)
    ]
    if faults:
        raise BadRequest("path parameters", [(to_wire(name), message) for name, message in faults])


class ApiNotFoundView(JSONView):
    """A JSON 404 for every unknown URL below /api. With DEBUG, Django would not call its 404 handler."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = ()
    schema = None

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        raise NotFound()
