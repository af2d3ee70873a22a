"""HTTP connections to addresses that users name: models, MCP servers, documents and webhooks."""
