"""Versions of agents, the trash and the live history."""

from agentcms import environment
from agentcms.settings.limits import MAX_DAYS

AGENT_VERSION_LIMIT = environment.read_int("AGENT_VERSION_LIMIT", 50, minimum=5)
AGENT_VERSION_DAYS = environment.read_int("AGENT_VERSION_DAYS", 0, maximum=MAX_DAYS)
TRASH_DAYS = environment.read_int("TRASH_DAYS", 30, minimum=1, maximum=MAX_DAYS)
ACTIVATION_DAYS = environment.read_int("ACTIVATION_DAYS", 730, minimum=1, maximum=MAX_DAYS)
