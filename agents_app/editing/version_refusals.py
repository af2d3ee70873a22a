"""Refusals of a version that is about to go live or to become the draft."""

from __future__ import annotations

from agents_app.configuration.schema import ConfigError, Issue


class MoveRefused(ConfigError):
    """The version may not become live or the draft, with an issue for each reason."""

    @property
    def summary(self) -> str:
        return " ".join(issue.message for issue in self.issues)


class GateNotMet(MoveRefused):
    """The version does not meet a release gate."""

    def __init__(self, reason: str) -> None:
        super().__init__([Issue("", reason)])
