"""The settings of the application, evaluated with the environment of a test."""

import importlib
import sys
from typing import Any

from agentcms.server.processes import PROJECT

PACKAGE = "agentcms.settings"
SETTINGS = PROJECT.joinpath(*PACKAGE.split("."))


def settings_source() -> str:
    """Return the code of all modules of the settings."""
    return "\n".join(path.read_text() for path in sorted(SETTINGS.glob("*.py")))


def loaded_settings() -> list[str]:
    return [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]


def evaluate_settings() -> dict[str, Any]:
    """Return the settings for the variables of this process, whose own settings stay as they are."""
    own = {name: sys.modules.pop(name) for name in loaded_settings()}
    try:
        return dict(vars(importlib.import_module(PACKAGE)))
    finally:
        for name in loaded_settings():
            del sys.modules[name]
        sys.modules.update(own)
        if own:
            sys.modules["agentcms"].settings = own[PACKAGE]
