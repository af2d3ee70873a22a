"""The write of an agent's row, and the signal by which the history takes part in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.dispatch import Signal

from agentcms.db.statements.write_batch import WriteBatch

if TYPE_CHECKING:
    from agents_app.models import Agent

POINTERS = ("active_version", "head_version")

# Sent when the configuration of an agent is saved, under the lock of its row and before the row is written.
# Argument: `write`, an AgentWrite. A receiver may set columns of the row and add statements.
agent_saving = Signal()
# Sent when agents are deleted, in the transaction and before their rows are locked exclusively. Argument: `ids`.
# A receiver locks rows that others lock before they need the row of an agent.
agents_deleting = Signal()


class AgentWrite(WriteBatch):
    """One UPDATE of a locked agent's row, and the statements that are sent with it."""

    def __init__(self, row: Agent, columns: Iterable[str] = ()) -> None:
        """Write these columns of the row, by attribute name, with the values that it has when the batch is sent."""
        super().__init__()
        self.row = row
        self.columns = {*columns}

    def set(self, **values: Any) -> None:
        """Set fields of the row and write their columns."""
        for name, value in values.items():
            setattr(self.row, name, value)
            self.columns.add(f"{name}_id" if name in POINTERS else name)

    def send(self) -> None:
        # The row first: the statements that follow read its new pointers.
        if self.columns:
            # Sorted, because a statement is cached for each order of its columns.
            values = {name: getattr(self.row, name) for name in sorted(self.columns)}
            self.prepend(WriteBatch().update(type(self.row), "id", self.row.pk, values))
        super().send()
