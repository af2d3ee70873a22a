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
from agents_app.api.idempotency import idempotent_while
from agents_app.api.required_role import note_required_role
from agents_app.api.strict_requests import checking_names, warning_payloads
from agents_app.configuration.schema import validate_fields
from evals_app.api.lookups import get_dataset
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


def find_run_and_dataset(request: Request, run_id: str) -> None:
    """Raise NotFound if the caller may not read the run or not see the dataset that the body names."""
    get_readable_run(request, run_id)
    get_dataset(request, json_object_body(request)["datasetId"])


class AddRunView(JSONView):
    """The addition of a run to a dataset."""

    @idempotent_while(find_run_and_dataset)
    def post(self, request: Request, run_id: str) -> HttpResponse:
        run = get_readable_run(request, run_id)
        body = json_object_body(request)
        with checking_names(request, body, RunItemBody, inside=unknown_in_item(body)) as names:
            options = validate_fields(RunItemBody, body)
        dataset = get_dataset(request, options["dataset_id"], Role.EDITOR)
        note_required_role(Role.EDITOR, dataset.owner_id)
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
        return json_response(item_body(version) | warning_payloads(names.unknown), 201)
