"""Receivers of the signals of a save and a deletion: record a version, prune the surplus, fill the trash.

A save of an agent, by `Agent.save()` or `Agent.edit()`, does the following in one transaction:

1. Lock the row. Send `pre_save`.
2. Send `agent_saving`: `record_version` adds the new version, the pointers and the activation to the write of the row.
3. Send `version_saving`: `prune_surplus` adds the deletion of versions over the limit.
4. Write everything at once.
5. Send `post_save` of the activation, the version and the agent. Every receiver reads what was written.

`restore()`, `activate()`, a snapshot and a publishing edit beside a draft move the pointers themselves.
They send `version_saving` and `post_save` of the version and the activation, and no signal of the agent.
A fixture brings its own versions and sends none of our signals.
"""

from __future__ import annotations

from django.conf import settings
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from agents_app.editing.saving import AgentWrite, agent_saving
from agents_app.models import Agent
from versions_app import trash
from versions_app.models import AgentVersion
from versions_app.publishing import version_saving
from versions_app.retention import prune_in_batch


@receiver(agent_saving)
def record_version(write: AgentWrite, **kwargs: object) -> None:
    """Record a saved configuration as a version if it differs from the head."""
    AgentVersion.objects.record_in_write(write)


@receiver(version_saving)
def prune_surplus(write: AgentWrite, **kwargs: object) -> None:
    """Prune the oldest versions of an agent that may have more than the limit."""
    if write.row.last_version_number > settings.AGENT_VERSION_LIMIT:  # numbers are never reused
        prune_in_batch(write.row.pk, write)


@receiver(pre_delete, sender=Agent)
def store_deleted_agent(instance: Agent, **kwargs: object) -> None:
    """Put an agent in the trash, however it is deleted."""
    trash.store_record(instance)
