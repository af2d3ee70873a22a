"""A reference model of agents and their histories in plain Python, without a database."""

from dataclasses import dataclass, field, replace
from typing import Any

from agentcms.wire.canonical import canonical
from agents_app.configuration.schema import WIRE_NAMES

LIMIT = 5
Snapshot = dict[str, Any]


@dataclass(frozen=True)
class Version:
    number: int
    snapshot: Snapshot
    based_on: int | None
    pinned: bool = False
    changed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return canonical(self.snapshot)


@dataclass
class History:
    """An agent with its versions by number, head, live and all activations."""

    versions: dict[int, Version] = field(default_factory=dict)
    head: int = 0
    live: int = 0
    counter: int = 0
    moves: list[tuple[int | None, int]] = field(default_factory=list)
    owner: str = ""

    @property
    def has_draft(self) -> bool:
        return self.versions[self.head].text != self.versions[self.live].text

    @property
    def head_snapshot(self) -> Snapshot:
        """Return the snapshot of the head, which the row of the agent contains."""
        return self.versions[self.head].snapshot

    # --- The table

    def create(self, snapshot: Snapshot) -> None:
        self._append(snapshot, None, head=True, live=True)

    def save(self, snapshot: Snapshot, publish: bool | None) -> None:
        draft = self.has_draft
        if canonical(snapshot) != self.versions[self.head].text:
            self._append(snapshot, self.head, head=True, live=not draft if publish is None else publish)
        elif publish and draft:
            self._go_live(self.head)

    def edit(self, fields: Snapshot, publish: bool | None) -> None:
        if not (publish and self.has_draft):
            snapshot = {**self.head_snapshot, **fields}
            if canonical(snapshot) != self.versions[self.head].text:
                self.save(snapshot, publish)
            return
        snapshot = {**self.versions[self.live].snapshot, **fields}
        if canonical(snapshot) != self.versions[self.live].text:
            self._append(snapshot, self.live, head=False, live=True)

    def activate(self, number: int) -> None:
        if number != self.live:
            if not self.has_draft:
                self.head = number
            self._go_live(number)

    def restore(self, number: int, publish: bool | None) -> None:
        self._append(self.versions[number].snapshot, self.head, head=True, live=publish is not False)

    def snapshot(self, pinned: bool) -> None:
        self._append(self.head_snapshot, self.head, head=True, live=False, pinned=pinned)

    def discard_draft(self) -> None:
        if self.has_draft:
            self.head = self.live

    def remove(self, number: int) -> bool:
        if number == self.live:
            return False
        if number == self.head:
            self.head = self.live
        del self.versions[number]
        return True

    def pin(self, number: int, pinned: bool) -> None:
        self.versions[number] = replace(self.versions[number], pinned=pinned)

    def undo(self) -> bool:
        before = self.moves[-1][0]
        if before not in self.versions:
            return False
        self.activate(before)
        return True

    # --- Numbers and retention

    def _append(
        self, snapshot: Snapshot, based_on: int | None, *, head: bool, live: bool, pinned: bool = False
    ) -> None:
        self.counter += 1
        base = self.versions[based_on].snapshot if based_on else {}
        names = WIRE_NAMES.values()
        changed = tuple(name for name in names if canonical(base.get(name)) != canonical(snapshot.get(name)))
        self.versions[self.counter] = Version(self.counter, snapshot, based_on, pinned, changed)
        if head:
            self.head = self.counter
        if live:
            self._go_live(self.counter)
        self._prune()

    def _go_live(self, number: int) -> None:
        self.moves.append((self.live or None, number))
        self.live = number

    def _prune(self) -> None:
        spared = {self.live, self.head, self.moves[-1][0]} | {
            n for n, version in self.versions.items() if version.pinned
        }
        surplus = len(self.versions) - LIMIT
        for number in [n for n in sorted(self.versions) if n not in spared][: max(surplus, 0)]:
            del self.versions[number]
