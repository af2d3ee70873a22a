"""Names of settings that staff may allow for a provider in addition to those of its dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agentcms.wire.names import to_python

PREFIXES = ("openai_", "anthropic_", "google_", "extra_body.")
# Members of a request that this application sets itself.
RESERVED_MEMBERS = frozenset(
    {
        "contents",
        "generation_config",
        "generationConfig",
        "input",
        "instructions",
        "messages",
        "model",
        "stream",
        "stream_options",
        "system",
        "system_instruction",
        "systemInstruction",
        "tool_choice",
        "tool_config",
        "toolConfig",
        "tools",
    }
)
# They would send requests past the checks of addresses, or leave answers unread.
RESERVED_SETTINGS = frozenset({"openai_transport", "openai_background"})


def setting_error(name: str) -> str:
    """Return why staff cannot allow a setting, or a blank text."""
    normal = normalize_name(name)
    member = normal.partition(".")[2]
    if normal == "extra_body":
        return "Name each member of extraBody that is allowed, such as extraBody.min_p."
    if member in RESERVED_MEMBERS or normal in RESERVED_SETTINGS:
        return f"'{name}' cannot be allowed: the application sets it. Remove it."
    if not normal.startswith(PREFIXES) or normal in PREFIXES:
        return f"'{name}' is not a setting of a provider. Write names such as googleCachedContent or extraBody.min_p."
    return ""


def normalize_name(name: str) -> str:
    """Return a name as pydantic-ai has it. The members of `extraBody` stay as they are."""
    setting, dot, member = name.strip().partition(".")
    return f"{to_python(setting)}{dot}{member}"


def normalize_names(names: Iterable[object]) -> frozenset[str]:
    """Return the names that staff may allow, without the others."""
    return frozenset(normalize_name(name) for name in names if isinstance(name, str) and not setting_error(name))


def split_by_provider(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of `provider:name` texts by provider."""
    names: dict[str, list[str]] = {}
    for text in texts:
        provider, _, name = text.partition(":")
        names.setdefault(provider.strip(), []).append(name)
    return names
