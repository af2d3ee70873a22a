"""Texts that come from outside, such as from MCP servers, in messages to people."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text with spaces in place of control characters, such as those that turn the direction of writing."""
    return "".join(character if character.isprintable() else " " for character in text)
