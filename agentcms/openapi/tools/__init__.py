"""Tools from outside in the API document: MCP servers, ACP agents and knowledge bases."""
