"""Tools from outside in the API document: MCP servers and knowledge bases."""
