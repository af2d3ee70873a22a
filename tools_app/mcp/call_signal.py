"""The signal of calls of MCP servers, which the metrics count."""

from django.dispatch import Signal

mcp_called = Signal()  # server, outcome ("succeeded", "failed" or "timed_out") and seconds of a call
