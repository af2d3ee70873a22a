"""The type of a version, for the domain of agents. The model belongs to the versions app, which is above."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from agentcms.wire.json_types import JSONObject, JSONValue

if TYPE_CHECKING:
    from agents_app.models import Agent


class Version(Protocol):
    """An immutable snapshot of an agent, as `active_version` and `head_version` refer to it."""

    id: UUID
    version_number: int
    snapshot_text: str
    snapshot_hash: str
    references: JSONValue
    author_name: str
    created_at: datetime

    @property
    def snapshot(self) -> JSONObject: ...

    def activate_locked(self, row: Agent) -> bool: ...

    def amend_locked(self, row: Agent, fields: JSONObject) -> Version | None: ...
