"""The rows of a page of a history."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agents_app.models import Agent
from versions_app.history.folding import Saves
from versions_app.history.timeline import TimelineEntry, build_timeline


@dataclass(frozen=True)
class HistoryRow:
    """A version, or several saves of one person. `entries` has all of them if the row is open, else the newest."""

    saves: Saves
    entries: Sequence[TimelineEntry]

    @property
    def number(self) -> int:
        return self.saves[0].number

    @property
    def oldest(self) -> int:
        return self.saves[-1].number

    @property
    def is_open(self) -> bool:
        return len(self.entries) > 1


def build_history_rows(agent: Agent, page: Sequence[Saves], opened: Collection[int]) -> list[HistoryRow]:
    """Return the rows of a page. `opened` has the newest version of each row whose saves are shown one by one."""
    visible = {saves[0].number: saves if saves[0].number in opened else saves[:1] for saves in page}
    bases = {saves[0].number: saves[-1].based_on for saves in page if saves[0].number not in opened}
    numbers = [save.number for saves in visible.values() for save in saves]
    versions = agent.versions.filter(version_number__in=numbers).defer("snapshot_text")
    entries = {entry.number: entry for entry in build_timeline(agent, versions, bases)}
    rows = []
    for saves in page:
        # Without those that were deleted since the page of saves was read.
        remaining = [entries[save.number] for save in visible[saves[0].number] if save.number in entries]
        if remaining:
            rows.append(HistoryRow(saves, remaining))
    return rows
