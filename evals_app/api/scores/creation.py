"""Creation of scores by people and programs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field
from rest_framework.request import Request

from access_app.permissions import require_role
from access_app.role import Role
from agentcms.wire.json_types import JSONObject
from agents_app.api.required_role import note_required_role
from agents_app.configuration.schema import WIRE_CONFIG, validate_fields
from evals_app.scorers.results import ScoreValue
from runs_app.api.lookups import get_readable_run
from runs_app.models import Score


class ScoreBody(BaseModel):
    """A score that a person or a program gives an answer."""

    model_config = WIRE_CONFIG

    run_id: Annotated[str, Field(max_length=64)]
    scorer_id: Annotated[str, Field(min_length=1, max_length=256)]
    score: ScoreValue | None = None
    reason: Annotated[str, Field(max_length=5000)] | None = None
    label: Annotated[str, Field(max_length=64)] | None = None
    details: JSONObject | None = None


def create_score(request: Request, given: JSONObject) -> Score:
    """Create a score of a run. Raise ConfigError, NotFound for a run of others, and RoleRequired."""
    fields = validate_fields(ScoreBody, given)
    run = get_readable_run(request, fields["run_id"])
    require_role(request.user, Role.EDITOR, run.owner_id)
    note_required_role(Role.EDITOR, run.owner_id)
    return Score.objects.create(
        run=run,
        scorer=fields["scorer_id"],
        score=fields.get("score"),
        reason=fields.get("reason") or "",
        label=fields.get("label") or "",
        details=fields.get("details") or {},
        source=Score.Source.PERSON,
        result=given,
        created_by_id=request.user.pk,
    )
