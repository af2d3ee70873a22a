"""The signal of prompts to ACP agents, which the metrics count."""

from django.dispatch import Signal

# agent, outcome ("succeeded", "failed", "suspended" or "crashed") and seconds of a prompt
acp_prompted = Signal()
