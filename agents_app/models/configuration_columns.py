"""The columns of the configuration of an agent, which its versions store too."""

from __future__ import annotations

from django.db import models


class ConfigurationColumns(models.Model):
    """The ID of an agent, and a column for each field of its configuration."""

    id = models.CharField(primary_key=True, max_length=128)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    instructions = models.TextField(blank=True)
    request_context_schema = models.JSONField(
        "variables",
        null=True,
        blank=True,
        help_text='{"properties": {"tone": {"description": …, "default": …}}, "required": ["tone"]}',
    )
    model = models.JSONField(help_text='{"provider": …, "name": …} and the settings of the model.')
    tools = models.JSONField(default=list, blank=True)
    default_options = models.JSONField(default=dict, blank=True)
    durable = models.JSONField(
        null=True,
        blank=True,
        help_text='Whether runs survive their process: true, false or {"maxSteps": 20}. Blank: as RUN_DURABLE says.',
    )
    workflows = models.JSONField(default=list, blank=True)
    agents = models.JSONField("sub-agents", default=list, blank=True)
    integration_tools = models.JSONField(default=list, blank=True, help_text="Keys such as provider_toolkit_tool.")
    mcp_clients = models.JSONField(
        "MCP tools", null=True, blank=True, help_text='{"server": {"tools": {"tool": {"requireApproval": true}}}}'
    )
    background_tasks = models.JSONField(
        null=True, blank=True, help_text='{"tools": {"tool": {"enabled": true, "timeoutMs": 600000}}}'
    )
    knowledge = models.JSONField(null=True, blank=True, help_text='{"base": {"filter": {"key": "value"}, "topK": 5}}')
    input_processors = models.JSONField(default=list, blank=True)
    output_processors = models.JSONField(default=list, blank=True)
    # The column `memory` of the previous release only has keys. It is removed in the next one.
    memory = models.JSONField(
        null=True,
        blank=True,
        db_column="memory_choice",
        help_text='The key of a registered memory, or {"options": {"lastMessages": 10, …}}.',
    )
    conditional = models.JSONField(
        "variants",
        null=True,
        blank=True,
        help_text='{"model": [{"value": …, "rules": {"operator": "AND", "conditions": […]}}]}',
    )
    context_keys = models.JSONField(
        "context keys", null=True, blank=True, help_text="Names of claims that the rules of variants may read."
    )
    scorers = models.JSONField(default=dict, blank=True)
    metadata = models.JSONField(default=dict, blank=True)

    class Meta:
        abstract = True
