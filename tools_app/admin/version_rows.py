"""The versions on the admin pages of MCP servers and ACP agents."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from agentcms.wire.canonical import json_equal
from tools_app.models.versioned import ConfigurationVersion, VersionedConfiguration

MAX_VERSIONS = 20
# The labels of members that have no column: the names of secrets are beside them.
SECRET_LABELS = {"headerNames": "headers", "envNames": "environment"}


class ConfigurationVersionRow(NamedTuple):
    """A version with the labels of what it changed, and whether it can be restored."""

    version: ConfigurationVersion
    changed: list[str]
    is_current: bool


def configuration_version_rows(
    row: VersionedConfiguration, columns: Mapping[str, str]
) -> list[ConfigurationVersionRow]:
    """Return the newest versions of a configuration. `columns` has the column of each member of its snapshot."""
    names = {field.name: str(field.verbose_name) for field in row._meta.fields}
    labels = SECRET_LABELS | {member: names[column] for member, column in columns.items()}
    # One more than is listed: it shows what the last one changed.
    versions: list[ConfigurationVersion | None] = [*row.versions.all()[: MAX_VERSIONS + 1]]
    pairs = pairwise([*versions, None] if len(versions) <= MAX_VERSIONS else versions)
    members = list(row.snapshot)
    return [
        ConfigurationVersionRow(
            version,
            [labels.get(member, member) for member in changed_members(version, before, members)],
            version.version_number == row.last_version_number,
        )
        for version, before in pairs
        if version is not None
    ]


def changed_members(
    version: ConfigurationVersion, before: ConfigurationVersion | None, members: list[str]
) -> list[str]:
    """Return the members of the snapshot in which a version differs from the one before. The first has none.

    They come in the order of `members`, those of the snapshot now: PostgreSQL stores the keys of JSON in an order of
    its own.
    """
    if before is None:
        return []
    old, new = before.snapshot, version.snapshot
    names = dict.fromkeys([*members, *new])
    return [name for name in names if name in new and not json_equal(old.get(name), new[name])]
