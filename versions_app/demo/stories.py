"""Three people and a dozen agents with believable histories, to look at and play with.

Each agent is a file of `agents/`: what it was when it began, and the steps that followed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AGENTS_FOLDER = Path(__file__).parent / "agents"

# Username, full name, superuser, and the role for each owner.
DEMO_USERS: list[tuple[str, str, bool, dict[str, str]]] = [
    ("ada", "Ada Lindqvist", True, {}),
    ("maya", "Maya Okafor", False, {"": "publisher", "support": "manager", "newsroom": "publisher"}),
    ("tom", "Tom Weber", False, {"": "editor", "support": "editor", "engineering": "viewer"}),
]


@dataclass(frozen=True)
class DemoStep:
    """One act in an agent's history: edit, draft, activate, restore or name."""

    act: str
    who: str
    days_ago: float = 0
    message: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    replace: tuple[str, str] = ("", "")  # a passage of the instructions, and what it becomes
    add: str = ""  # a paragraph at the end of the instructions
    number: int = 0  # of the version that is activated, restored or named
    name: str = ""
    pinned: bool = False


@dataclass(frozen=True)
class DemoAgent:
    """An agent as it began, and what happened to it."""

    id: str
    owner_id: str
    who: str
    days_ago: float
    fields: dict[str, Any]
    steps: list[DemoStep]


def load_demo_agents() -> Iterator[DemoAgent]:
    """Every agent's story, by id."""
    for path in sorted(AGENTS_FOLDER.glob("*.toml")):
        said = tomllib.loads(path.read_text())
        steps = [DemoStep(**step) for step in said.pop("steps", [])]
        yield DemoAgent(id=path.stem, steps=steps, **said)
