"""Factories of runs."""

from datetime import timedelta
from typing import Any

import factory
from django.utils import timezone

from agentcms.ids import uuid7
from runs_app.models import AgentRun, PendingCall, RunEvent
from tests.factories import AgentFactory, UserFactory

Chunk = tuple[str, dict[str, Any]]


class RunFactory(factory.django.DjangoModelFactory[AgentRun]):
    """A finished run that answered "Good day." to "Hello"."""

    class Meta:
        model = AgentRun
        skip_postgeneration_save = True

    agent = factory.SubFactory(AgentFactory)
    agent_key = factory.SelfAttribute("agent.pk")
    owner_id = factory.SelfAttribute("agent.owner_id")
    agent_owner_id = factory.SelfAttribute("agent.owner_id")
    version_id = factory.SelfAttribute("agent.active_version_id")
    version_number = factory.SelfAttribute("agent.active_version.version_number")
    configuration = factory.LazyAttribute(lambda run: run.agent.active_version.snapshot)
    requested_by = factory.SubFactory(UserFactory)
    requested_by_name = factory.SelfAttribute("requested_by.username")
    status = AgentRun.Status.SUCCEEDED
    output = "Good day."
    is_demo = True
    usage = factory.LazyFunction(lambda: {"inputTokens": 12, "outputTokens": 3, "totalTokens": 15})
    created_at = factory.LazyFunction(lambda: timezone.now() - timedelta(minutes=5))
    started_at = factory.LazyAttribute(lambda run: run.created_at + timedelta(milliseconds=200))
    finished_at = factory.LazyAttribute(lambda run: run.created_at + timedelta(seconds=2, milliseconds=500))

    class Params:
        prompt = "Hello"
        open = factory.Trait(status=AgentRun.Status.RUNNING, finished_at=None, output="")
        suspended = factory.Trait(
            status=AgentRun.Status.SUSPENDED,
            finished_at=None,
            suspended_at=factory.SelfAttribute("created_at"),
            output="",
            is_durable=True,
        )

    id = factory.LazyFunction(uuid7)
    root_id = factory.SelfAttribute("id")
    input = factory.LazyAttribute(
        lambda run: {"messages": [{"role": "user", "content": [{"type": "text", "text": run.prompt}]}], "options": {}}
    )

    @factory.post_generation
    def chunks(run: AgentRun, create: bool, given: list[Chunk] | None, **more: Any) -> None:
        """Create the given events of type and payload, or else the answer in one text delta."""
        default_chunks: list[Chunk] = [
            ("text-start", {"id": "1-0"}),
            ("text-delta", {"id": "1-0", "text": run.output}),
        ]
        for number, (kind, payload) in enumerate(default_chunks if given is None else given, 1):
            at = (run.started_at or run.created_at) + timedelta(milliseconds=100 * number)
            chunk = {"type": kind, "payload": payload}
            RunEvent.objects.create(run=run, number=number, type="chunk", data=chunk, created_at=at)


class PendingCallFactory(factory.django.DjangoModelFactory[PendingCall]):
    """A call of the tool "refund" that waits for approval, of a run that waits for people."""

    class Meta:
        model = PendingCall

    run = factory.SubFactory(RunFactory, suspended=True, chunks=[])
    root_id = factory.SelfAttribute("run.root_id")
    segment = factory.SelfAttribute("run.segment")
    call_id = factory.Sequence(lambda n: f"call-{n}")
    agent_key = factory.SelfAttribute("run.agent_key")
    owner_id = factory.SelfAttribute("run.owner_id")
    requested_by = factory.SelfAttribute("run.requested_by")
    requested_by_name = factory.SelfAttribute("run.requested_by_name")
    realm_owner = factory.SelfAttribute("run.realm_owner")
    tool = "refund"
    arguments = factory.LazyFunction(lambda: {"order": "A-17", "amount": 250})
    kind = PendingCall.Kind.APPROVAL
    mark = "0123456789abcdef"
    expires_at = factory.LazyFunction(lambda: timezone.now() + timedelta(days=7))


class RefundCallFactory(PendingCallFactory):
    """A call with a schema, after some words of the agent."""

    run = factory.SubFactory(
        RunFactory,
        suspended=True,
        chunks=[
            ("text-delta", {"id": "1-0", "text": "I refund this order now."}),
            ("tool-call", {"toolCallId": "call-1", "toolName": "refund", "args": {}}),
        ],
    )
    call_id = "call-1"
    arguments = factory.LazyFunction(lambda: {"order": "A-17", "amount": 120})
    arguments_schema = factory.LazyFunction(
        lambda: {
            "type": "object",
            "properties": {"order": {"type": "string"}, "amount": {"type": "number"}},
            "required": ["order", "amount"],
        }
    )
    mark = "mark-1"
    expires_at = factory.LazyFunction(lambda: timezone.now() + timedelta(days=6, hours=1))
