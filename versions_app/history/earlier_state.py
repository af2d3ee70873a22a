"""The live version and the head that an agent had at an earlier revision."""

from __future__ import annotations

from agents_app.models import Agent
from versions_app.models import Activation, AgentVersion
from versions_app.models.version import get_head_version, get_live_version

MAX_REVISIONS = 50


class EarlierState:
    """The versions and activations of an agent since a revision.

    Each save and each move of live makes one revision. A change without a version, such as a new owner, makes one too;
    after such a change, the state may be that of an older revision.
    """

    def __init__(self, agent: Agent, revision: int) -> None:
        self.agent = agent
        self.count = agent.revision - revision
        self.versions: list[AgentVersion] = []
        self.activations: list[Activation] = []
        if 0 < self.count <= MAX_REVISIONS:
            self._load()

    def _load(self) -> None:
        """Load the newest changes, as many as there are revisions."""
        versions = list(AgentVersion.objects.filter(agent=self.agent)[: self.count])
        activations = list(Activation.objects.filter(agent=self.agent)[: self.count])
        # A published save is one change: its version and its activation have the same time.
        times = {version.created_at for version in versions} | {entry.created_at for entry in activations}
        since = sorted(times, reverse=True)[: self.count]
        self.versions = [version for version in versions if version.created_at in since]
        self.activations = [activation for activation in activations if activation.created_at in since]

    def find_live(self) -> AgentVersion | None:
        """Return the version that was live, or None if it is not known."""
        if self.activations:
            return self._find(id=self.activations[-1].from_version_id)
        return get_live_version(self.agent) if self.versions else None

    def find_head(self) -> AgentVersion | None:
        """Return the version that was the head, or None if it is not known."""
        since = {version.version_number: version for version in self.versions}
        number: int | None = get_head_version(self.agent).version_number
        if number not in since:
            return self.find_live() if self.activations else None
        while number in since:
            number = since.pop(number).based_on
        return self._find(version_number=number)

    def _find(self, **key: object) -> AgentVersion | None:
        return AgentVersion.objects.filter(agent=self.agent, **key).first()
