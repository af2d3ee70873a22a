"""The process of the MCP server of the demo. It exists only beside demo data, as does the permission to reach it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from agentcms import environment
from agentcms.server.processes import Child
from tools_app.demo.address import HOST, PORT_FILE, URL_VARIABLE, choose_port, demo_url

DEMO_STOP_TIMEOUT = 1.0  # seconds; it keeps nothing


def demo_mcp_variables(data: Path) -> dict[str, str]:
    """Return the variable with the URL for the preparation, or none without demo data."""
    port = choose_port(data) if environment.read_bool("DEMO_DATA", default=True) else None
    return {} if port is None else {URL_VARIABLE: demo_url(port)}


def demo_mcp_process(data: Path, variables: Mapping[str, str]) -> tuple[Child, dict[str, str]] | None:
    """Return the process, with the variables that allow connections to it. None if there is no demo data."""
    if URL_VARIABLE not in variables or not (data / PORT_FILE).exists():
        return None
    port = (data / PORT_FILE).read_text()
    command = [sys.executable, "-m", "tools_app.demo.server", HOST, port]
    networks = [variables.get("OUTBOUND_NETWORKS", ""), f"{HOST}/32"]
    allowed = {"OUTBOUND_NETWORKS": ",".join(filter(None, networks))}
    return Child("demo-mcp", command, variables, stop_timeout=DEMO_STOP_TIMEOUT), allowed
