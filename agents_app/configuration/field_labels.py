"""The labels of the fields of an agent, in the order of its pages."""

from __future__ import annotations

FIELD_LABELS = {
    "name": "Name",
    "description": "Description",
    "instructions": "Instructions",
    "requestContextSchema": "Variables",
    "model": "Model",
    "tools": "Tools",
    "defaultOptions": "Default options",
    "durable": "Durable",
    "workflows": "Workflows",
    "agents": "Sub-agents",
    "integrationTools": "Integration tools",
    "mcpClients": "MCP tools",
    "backgroundTasks": "Background tasks",
    "knowledge": "Knowledge",
    "inputProcessors": "Input processors",
    "outputProcessors": "Output processors",
    "memory": "Memory",
    "conditional": "Variants",
    "contextKeys": "Context keys",
    "scorers": "Scorers",
    "metadata": "Metadata",
}
