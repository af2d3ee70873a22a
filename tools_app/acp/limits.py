"""The limits of an ACP agent: of its processes, and of one prompt."""

from __future__ import annotations

from typing import Annotated

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field

from agents_app.configuration.schema import WIRE_CONFIG


class Limits(BaseModel):
    """Limits of one process of the agent, and of the time of one prompt."""

    model_config = ConfigDict(**{**WIRE_CONFIG, "extra": "forbid"})

    memory_mb: Annotated[int, Field(ge=64, le=65_536)] = 2048
    processes: Annotated[int, Field(ge=1, le=4096)] = 64
    cpu_seconds: Annotated[int, Field(ge=1, le=86_400)] = 600
    prompt_seconds: Annotated[int, Field(ge=1, le=3600)] = 300

    @property
    def prompt_timeout(self) -> int:
        """The seconds of a prompt, within those of a run."""
        return min(self.prompt_seconds, settings.RUN_TIMEOUT)
