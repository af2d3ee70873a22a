from django.apps import AppConfig


class ToolsConfig(AppConfig):
    """Configuration of the app with the tools that agents reach outside of this application."""

    name = "tools_app"
    verbose_name = "Tools from outside"

    def ready(self) -> None:
        from agents_app.registry import Kind, registry
        from tools_app import signals  # noqa: F401  connects the receivers
        from tools_app.acp.cached_agents import acp_table
        from tools_app.acp.entries import acp_entries
        from tools_app.acp.exports import export_acp_rows
        from tools_app.mcp import listing  # noqa: F401  registers the job handler
        from tools_app.mcp.cached_servers import server_table
        from tools_app.mcp.entries import mcp_entries

        export_acp_rows()
        registry.staff_entries[Kind.MCP_TOOL] = mcp_entries
        registry.staff_revisions[Kind.MCP_TOOL] = server_table.revision
        registry.staff_reloads[Kind.MCP_TOOL] = server_table.reload
        registry.staff_entries[Kind.ACP_AGENT] = acp_entries
        registry.staff_revisions[Kind.ACP_AGENT] = acp_table.revision
        registry.staff_reloads[Kind.ACP_AGENT] = acp_table.reload
