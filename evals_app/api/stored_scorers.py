"""API views of stored scorers and their versions."""

from __future__ import annotations

from django.http import HttpResponse
from pydantic import BaseModel
from rest_framework.request import Request

from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import NotFound
from agentcms.wire.json_types import JSONObject
from agentcms.wire.unknown_names import UnknownName, find_unknown_below
from agents_app.api.idempotency import idempotent, idempotent_while
from agents_app.api.lookups import owner_for_new_row
from agents_app.api.required_role import note_required_role
from agents_app.api.responses import deletion_message
from agents_app.api.strict_requests import checking_names, read_named_fields, warning_payloads
from agents_app.configuration.schema import WIRE_CONFIG, ConfigError, Issue
from agents_app.models import Agent
from evals_app.api.scorer_representation import scorer_body, scorer_version_body
from evals_app.models import Scorer
from evals_app.scorers import changes
from evals_app.scorers.schema import ChangeMessage, ScorerBody, parse_scorer, parse_scorer_change
from evals_app.scorers.settings import find_unknown_scorer_settings
from versions_app.api.schemas import read_compared_versions

# In a response with a scorer, which a caller may send back as it was read.
READ_ONLY_SCORER_KEYS = (
    "status",
    "activeVersionId",
    "versionNumber",
    "authorId",
    "createdAt",
    "updatedAt",
    "warnings",
)
SCORER_ORDERS = {"createdAt": "created_at", "updatedAt": "updated_at"}
VERSION_ORDERS = {"versionNumber": "version_number", "createdAt": "created_at"}


class NewVersion(BaseModel):
    """The description of a version."""

    model_config = WIRE_CONFIG

    change_message: ChangeMessage | None = None


def get_scorer(request: Request, scorer_id: str, role: Role = Role.VIEWER) -> Scorer:
    """Return a stored scorer. Raise NotFound if the user may not see it, and RoleRequired without the role."""
    rows = Scorer.objects.for_user(request.user).with_role(request.user).select_related("live", "head")
    row = rows.filter(pk=scorer_id).first()
    if row is None:
        raise NotFound(f"Scorer {scorer_id} not found.")
    if role != Role.VIEWER:
        require_granted_role(request.user, role, row)
        note_required_role(role, row.owner_id)
    return row


# For `idempotent_while`, which passes all arguments of a URL: the version is not looked up.
def find_visible_scorer(request: Request, scorer_id: str, version_id: str = "") -> None:
    """Raise NotFound if the caller may not see the scorer."""
    get_scorer(request, scorer_id)


def reject_other_identity(row: Scorer, fields: JSONObject) -> None:
    """Take the ID and the team out of the fields of a change. Raise ConfigError if they would change."""
    issues = []
    if (fields.pop("id", None) or row.pk) != row.pk:
        issues.append(Issue("id", "The ID of a scorer cannot change. Create another scorer."))
    if (fields.pop("owner_id", row.owner_id) or "") != row.owner_id:
        issues.append(Issue("ownerId", "A scorer stays with its team. Create another one there."))
    if issues:
        raise ConfigError(issues)


def unknown_in_scorer(body: JSONObject, kind: str = "") -> list[UnknownName]:
    """Return the names in the settings and in the score range of a body that nothing reads. `kind` is that so far."""
    return [*find_unknown_below(ScorerBody, body), *find_unknown_scorer_settings(body.get("type", kind), body)]


def role_to_change(publishes: bool) -> Role:
    """Return the role that a change needs: drafts are for editors, what scores is for publishers."""
    return Role.PUBLISHER if publishes else Role.EDITOR


class StoredScorersView(JSONView):
    """The stored scorers that the user may see, and the creation of one."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(100)
            order = query.order_by(tuple(SCORER_ORDERS), OrderBy("createdAt"))
            author = query.text("authorId")
            unknown = query.check_unknown_names()
        rows = Scorer.objects.for_user(request.user).select_related("live", "head")
        if author is not None:
            rows = rows.filter(created_by=author)
        rows = rows.order_by(order.signed(SCORER_ORDERS[order.field]), "pk")
        bodies = [scorer_body(row) for row in rows[paging.start : paging.stop]]
        payload = page_payload("scorerDefinitions", bodies, rows.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))

    @idempotent
    def post(self, request: Request) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, ScorerBody, inside=unknown_in_scorer(body)) as names:
            snapshot, fields = parse_scorer(body)
        owner_id = owner_for_new_row(request.user, fields.pop("owner_id", None))
        note_required_role(Role.EDITOR, owner_id)
        row = changes.create_scorer(snapshot, owner_id=owner_id, author=request.user.get_username(), **fields)
        return json_response(scorer_body(row) | warning_payloads(names.unknown), 201)


class StoredScorerView(JSONView):
    """A stored scorer: read, change and delete."""

    def get(self, request: Request, scorer_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            # The protocol has `archived`. Scorers have no archive, and answer as for `published`.
            shows_draft = query.choice("status", ("published", "draft", "archived"), "published") == "draft"
            unknown = query.check_unknown_names()
        return json_response(scorer_body(get_scorer(request, scorer_id), shows_draft) | warning_payloads(unknown))

    def patch(self, request: Request, scorer_id: str) -> HttpResponse:
        body, row = json_object_body(request), get_scorer(request, scorer_id)
        inside = unknown_in_scorer(body, row.head.snapshot["type"] if row.head else "")
        with checking_names(request, body, ScorerBody, silent=READ_ONLY_SCORER_KEYS, inside=inside) as names:
            change, fields = parse_scorer_change(body)
        # Again, because the role that is needed depends on the body.
        publishes = fields.get("publish") is not False
        get_scorer(request, scorer_id, role_to_change(publishes))
        reject_other_identity(row, fields)
        row = changes.change_scorer(scorer_id, change, author=request.user.get_username(), **fields)
        return json_response(scorer_body(row, shows_draft=not publishes) | warning_payloads(names.unknown))

    def delete(self, request: Request, scorer_id: str) -> HttpResponse:
        row = get_scorer(request, scorer_id, Role.PUBLISHER)
        # Before the deletion: the message names the agents that lose the scorer.
        agents = Agent.objects.using_row("scorers", row.pk, row.owner_id)
        message = deletion_message(request.user, f"Scorer {scorer_id}", agents)
        changes.delete_scorer(row)
        return json_response({"success": True, "message": message})


class ScorerVersionsView(JSONView):
    """The versions of a scorer, and a version of its newest configuration."""

    def get(self, request: Request, scorer_id: str) -> HttpResponse:
        row = get_scorer(request, scorer_id)
        with QueryParams(request) as query:
            paging = query.paging(20)
            order = query.order_by(tuple(VERSION_ORDERS), OrderBy("versionNumber"))
            unknown = query.check_unknown_names()
        versions = row.versions.order_by(order.signed(VERSION_ORDERS[order.field]))
        bodies = [scorer_version_body(version) for version in versions[paging.start : paging.stop]]
        payload = page_payload("versions", bodies, versions.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))

    @idempotent_while(find_visible_scorer)
    def post(self, request: Request, scorer_id: str) -> HttpResponse:
        row = get_scorer(request, scorer_id, Role.EDITOR)
        fields, unknown = read_named_fields(request, json_object_body(request), NewVersion)
        version = changes.copy_head(row.pk, request.user.get_username(), fields.get("change_message") or "")
        return json_response(scorer_version_body(version) | warning_payloads(unknown), 201)


class ScorerVersionView(JSONView):
    """A version of a scorer: read and delete."""

    def get(self, request: Request, scorer_id: str, version_id: str) -> HttpResponse:
        return json_response(
            scorer_version_body(changes.get_scorer_version(get_scorer(request, scorer_id), version_id))
        )

    def delete(self, request: Request, scorer_id: str, version_id: str) -> HttpResponse:
        row = get_scorer(request, scorer_id, Role.PUBLISHER)
        changes.delete_version(row, changes.get_scorer_version(row, version_id))
        return json_response({"success": True, "message": f"Version {version_id} deleted"})


class ScorerActivateView(JSONView):
    """The publishing of a version."""

    @idempotent_while(find_visible_scorer)
    def post(self, request: Request, scorer_id: str, version_id: str) -> HttpResponse:
        version = changes.get_scorer_version(get_scorer(request, scorer_id, Role.PUBLISHER), version_id)
        changes.activate_version(scorer_id, version)
        message = f"Version {version.version_number} is live"
        return json_response({"success": True, "message": message, "activeVersionId": version.pk})


class ScorerRestoreView(JSONView):
    """A new version with the configuration of an earlier one."""

    @idempotent_while(find_visible_scorer)
    def post(self, request: Request, scorer_id: str, version_id: str) -> HttpResponse:
        # Not an editor: the new version goes live.
        version = changes.get_scorer_version(get_scorer(request, scorer_id, Role.PUBLISHER), version_id)
        restored = changes.add_restored_version(scorer_id, version, request.user.get_username())
        return json_response(scorer_version_body(restored), 201)


class ScorerCompareView(JSONView):
    """The fields that differ between two versions."""

    def get(self, request: Request, scorer_id: str) -> HttpResponse:
        row = get_scorer(request, scorer_id)
        with QueryParams(request) as query:
            names = read_compared_versions(query)
            unknown = query.check_unknown_names()
        old, new = (changes.get_named_version(row, name) for name in names)
        diffs = [
            {"field": name, "previousValue": old.snapshot.get(name), "currentValue": new.snapshot.get(name)}
            for name in changes.differing_fields(old.snapshot, new.snapshot)
        ]
        versions = {"fromVersion": scorer_version_body(old), "toVersion": scorer_version_body(new)}
        return json_response({"diffs": diffs, **versions} | warning_payloads(unknown))
