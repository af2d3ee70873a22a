"""The status of an admin form that names a program."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from agentcms.web.template_context import TemplateContext
from agents_app.configuration.fields.programs import COMMAND_NOT_ALLOWED


class RefusedCommandsMixin:
    """A mixin that answers 422 to a form that names a program, as the API does. Django answers 200 to invalid ones."""

    def render_change_form(self, request: HttpRequest, context: TemplateContext, *args: Any, **kwargs: Any) -> Any:
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)  # type: ignore[misc]
        errors = context["adminform"].form.errors.as_data().values()
        if any(error.code == COMMAND_NOT_ALLOWED for of_field in errors for error in of_field):
            response.status_code = 422
        return response
