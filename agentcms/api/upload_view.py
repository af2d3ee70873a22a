"""The base class of API views that receive a file, as the body or in a form."""

from __future__ import annotations

from typing import Any

from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request

from agentcms.api.parsers import StrictJSONParser
from agentcms.api.views import JSONView
from agentcms.web.uploads import SizeLimitedUploadHandler


class UploadView(JSONView):
    """An API view that writes a file of a form to disk, up to the size limit of files."""

    parser_classes = (StrictJSONParser, MultiPartParser)

    def initialize_request(self, request: Any, *args: Any, **kwargs: Any) -> Request:
        # Before authentication, which reads the form for the CSRF token of a session.
        request.upload_handlers = [SizeLimitedUploadHandler(request)]
        return super().initialize_request(request, *args, **kwargs)
