"""Rows of ACP agents in the export of the data of a resource."""

from __future__ import annotations

from runs_app.privacy.export import ExportedRows, add_to_export
from tools_app.models import AcpPermission, AcpPrompt, AcpSession

PERMISSION_COLUMNS = ["agent__key", "owner_id", "title", "option_kind", "decided_by_name", "created_at"]
SESSION_COLUMNS = ["agent__key", "owner_id", "version_number", "session_id", "updated_at"]


def export_acp_rows() -> None:
    """Add permissions, sessions and sent prompts to exports."""
    add_to_export(
        ExportedRows("acpPermission", AcpPermission, ["pk"], PERMISSION_COLUMNS),
        ExportedRows("acpSession", AcpSession, ["pk"], SESSION_COLUMNS),
        ExportedRows("acpPrompt", AcpPrompt, ["run_id", "number"], ["run_id", "number", "created_at"]),
    )
