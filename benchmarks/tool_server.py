"""An MCP server with many tools, for measurements: `python -m benchmarks.tool_server http PORT`, or `… stdio`."""

from __future__ import annotations

import sys

TOOLS = 200


def main() -> None:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("benchmark")

    def add(a: int, b: int, note: str = "", tags: list[str] | None = None) -> int:
        """Add two numbers."""
        return a + b

    for number in range(TOOLS):
        server.add_tool(add, name=f"add_{number}", description=f"Add two numbers, in the way of department {number}.")
    if sys.argv[1] == "stdio":
        server.run()
    else:
        server.run("streamable-http", port=int(sys.argv[2]))


if __name__ == "__main__":
    main()
