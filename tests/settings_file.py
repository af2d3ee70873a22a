"""The settings of the application, evaluated with the environment of a test."""

from functools import cache
from types import CodeType
from typing import Any

from agentcms.server.processes import PROJECT

SETTINGS = PROJECT / "agentcms" / "settings.py"


@cache
def compiled_settings() -> CodeType:
    """Return the code of the file. To compile it takes longer than to execute it."""
    return compile(SETTINGS.read_text(), str(SETTINGS), "exec")


def evaluate_settings() -> dict[str, Any]:
    """Return the settings for the variables of this process."""
    values: dict[str, Any] = {"__name__": "agentcms.settings", "__file__": str(SETTINGS)}
    exec(compiled_settings(), values)
    return values
