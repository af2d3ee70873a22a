"""Demo data: three users and sixteen agents with realistic histories.

Each agent is a TOML file in `agents/` with its first configuration and the steps that followed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agentcms.wire.json_types import JSONObject

AGENTS_FOLDER = Path(__file__).parent / "agents"

# Username, full name, superuser, and the role for each owner.
DEMO_USERS: list[tuple[str, str, bool, dict[str, str]]] = [
    ("ada", "Ada Lindqvist", True, {}),
    ("maya", "Maya Okafor", False, {"": "publisher", "support": "manager", "newsroom": "publisher"}),
    ("tom", "Tom Weber", False, {"": "editor", "support": "editor", "engineering": "viewer"}),
]


@dataclass(frozen=True)
class DemoStep:
    """A step in the history of a demo agent: edit, draft, activate, restore or name."""

    action: str
    author: str
    days_ago: float = 0
    message: str = ""
    fields: JSONObject = field(default_factory=dict)
    replace: tuple[str, str] = ("", "")  # text of the instructions and its replacement
    add: str = ""  # paragraph appended to the instructions
    number: int = 0  # of the version to activate, restore or name
    name: str = ""
    pinned: bool = False


@dataclass(frozen=True)
class DemoAgent:
    """A demo agent: its first configuration and the steps of its history."""

    id: str
    owner_id: str
    author: str
    days_ago: float
    fields: JSONObject
    steps: list[DemoStep]


def load_demo_agents() -> Iterator[DemoAgent]:
    """Yield the demo agents, ordered by ID."""
    for path in sorted(AGENTS_FOLDER.glob("*.toml")):
        values = tomllib.loads(path.read_text())
        steps = [DemoStep(**step) for step in values.pop("steps", [])]
        yield DemoAgent(id=path.stem, steps=steps, **values)
