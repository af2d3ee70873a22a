"""API view that adds a run to a dataset."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpResponse
from pydantic import Field
from rest_framework.request import Request

from access_app.role import Role
from agentcms.api.parsers import json_object_body
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import Conflict
from agentcms.wire.json_types import JSONMapping
from agents_app.api.idempotency import idempotent_by_reference, referring_response
from agents_app.api.strict_requests import checking_names, warning_payloads
from agents_app.configuration.schema import validate_fields
from evals_app.api.lookups import get_dataset, get_item_versions
from evals_app.api.representation import item_body
from evals_app.datasets.from_runs import add_items_of_runs, item_of_run
from evals_app.datasets.schema import ItemChange, parse_item_change
from evals_app.datasets.unknown_in_item import unknown_in_item
from runs_app.api.lookups import get_readable_run


class RunItemBody(ItemChange):
    """The item of a run. What is not sent comes from the run."""

    dataset_id: Annotated[str, Field(min_length=1, max_length=64)]
    external_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    include_tool_mocks: bool | None = None
    include_trajectory: bool | None = None


def respond_with_added_run(request: Request, reference: JSONMapping, run_id: str) -> HttpResponse:
    """Return the item that a request has made of a run. Raise ApiError."""
    get_readable_run(request, run_id)
    dataset = get_dataset(request, json_object_body(request)["datasetId"], Role.EDITOR)
    (version,) = get_item_versions(dataset, reference["versions"])
    return json_response(item_body(version) | reference["more"])


class AddRunView(JSONView):
    """The addition of a run to a dataset."""

    @idempotent_by_reference(respond_with_added_run)
    def post(self, request: Request, run_id: str) -> HttpResponse:
        run = get_readable_run(request, run_id)
        body = json_object_body(request)
        with checking_names(request, body, RunItemBody, inside=unknown_in_item(body)) as names:
            options = validate_fields(RunItemBody, body)
        dataset = get_dataset(request, options["dataset_id"], Role.EDITOR)
        if not run.is_finished:
            raise Conflict("The run has not finished. Add it when it has.", "run_unfinished")
        item = item_of_run(
            run,
            request.user,
            with_mocks=bool(options.get("include_tool_mocks")),
            with_steps=bool(options.get("include_trajectory")),
        )
        # Not another source: the deletion of personal data finds the copies of a run by it.
        changes = parse_item_change({name: value for name, value in body.items() if name != "source"})
        if external_id := options.get("external_id"):
            changes |= {"external_id": external_id}
        (version,) = add_items_of_runs(dataset, [{**item, **changes}]).versions
        more = warning_payloads(names.unknown)
        return referring_response(item_body(version) | more, {"versions": [version.pk], "more": more}, 201)
