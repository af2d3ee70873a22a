"""Demo data: a conversation of three weeks with an agent that remembers, and one with two people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Sum
from django.utils import timezone

from agents_app.models import Agent
from memory_app.history.messages import Author, append_messages
from memory_app.history.threads import create_named_thread
from memory_app.history.token_estimate import count_tokens
from memory_app.history.wire_messages import parse_wire_message
from memory_app.models import Observation, Participant, Thread
from memory_app.observational.jobs import observe_if_enabled
from memory_app.realms import memory_caller
from memory_app.recall.indexing import index_if_recalled
from memory_app.working import values

ANSWER = ""  # the speaker of an answer

# Days ago, speaker, text.
Line = tuple[float, str, str]

TRIP: list[Line] = [
    (21, "tom", "We want to go to Lisbon in spring, my daughter Lena and I. She is seven."),
    (21, ANSWER, "Lovely. April is mild and not yet crowded. How long do you want to stay?"),
    (21, "tom", "Five nights. No early flights please, Lena is unbearable before nine."),
    (21, ANSWER, "Then I look for flights after ten. I suggest the 14th to the 19th of April."),
    (17, "tom", "I am allergic to shellfish, so please no seafood restaurants."),
    (
        17,
        ANSWER,
        "Noted: no shellfish. Alfama has good taverns with meat and vegetables.",
    ),
    (13, "tom", "Which museum would a child like?"),
    (13, ANSWER, "The Oceanarium, and the tram museum, where children may sit in the driver's seat."),
    (13, "tom", "The trams! She has a wooden model of one on her shelf."),
    (8, "tom", "The hotel should have a lift. My knee still hurts from skiing."),
    (8, ANSWER, "I picked two hotels near Rossio with a lift. Both are about 130 euros a night."),
    (8, "tom", "Take the cheaper one, the budget for everything is 1,400 euros."),
    (3, "tom", "Can we go to the sea for a day?"),
    (
        3,
        ANSWER,
        "Cascais is forty minutes by train. The water is cold in April, about 15 degrees.",
    ),
    (1, "tom", "Good. Please send me the list of what is booked."),
    (1, ANSWER, "Flights on the 14th and 19th after ten, five nights near Rossio, the Oceanarium on the 16th."),
]
OFFSITE: list[Line] = [
    (6, "tom", "We need a place for the team meeting in June, twelve people."),
    (6, "maya", "Two days, with one long walk. Last year the room was too dark."),
    (6, ANSWER, "A house at the lake near Lucerne has a bright room for fifteen, and paths along the shore."),
    (5, "maya", "How do we get there from Zurich by train?"),
    (5, ANSWER, "An hour to Lucerne, then twenty minutes by boat, which leaves every hour."),
    (4, "tom", "I book it if nobody objects by Friday."),
]
# First and last message, whether its text stands in their place, text.
NOTED = [
    (
        1,
        6,
        True,
        "- Tom travels to Lisbon with Lena, his daughter, who is seven.\n"
        "- Five nights from the 14th to the 19th of April, flights after ten: Lena is unbearable before nine.\n"
        "- Tom is allergic to shellfish: no seafood restaurants. Taverns in Alfama were suggested.",
    ),
    (
        7,
        12,
        False,
        "- Lena likes trams and has a wooden one. Suggested: the Oceanarium and the tram museum.\n"
        "- Tom's knee hurts, so the hotel needs a lift. Two near Rossio cost about 130 euros a night.\n"
        "- He takes the cheaper one. The budget for everything is 1,400 euros.",
    ),
]
NOTES = (
    "# Traveller\n- Name: Tom\n- Travels with: Lena, his daughter, seven years old\n"
    "- Likes: trams, late mornings, short walks\n- Avoids: shellfish (allergy), flights before nine, stairs (knee)"
)


def create_conversations(agent: Agent, users: dict[str, User]) -> int:
    """Create the demo conversations of an agent, unless somebody is missing. Return their number."""
    if not {"tom", "maya"} <= users.keys():
        return 0
    trip = create_conversation(agent, users, "lisbon", "A spring trip to Lisbon", TRIP)
    create_observations(trip)
    observe_if_enabled(trip)
    offsite = create_conversation(agent, users, "team-meeting", "The team meeting in June", OFFSITE)
    Participant.objects.create(thread=offsite, user=users["maya"], name="Maya", functional_role="organizer")
    if trip.resource is not None:
        values.replace_text(trip.resource, NOTES, values.Origin(user_id=users["tom"].pk))
    return 2


def create_observations(thread: Thread) -> None:
    """Store the observations of the conversation about the trip, as a model would write them."""
    for first, last, is_active, text in NOTED:
        tokens = thread.messages.filter(number__range=(first, last)).aggregate(total=Sum("tokens"))["total"] or 0
        Observation.objects.create(
            thread=thread,
            first=first,
            last=last,
            is_active=is_active,
            text=text,
            tokens=count_tokens(text),
            message_tokens=tokens,
            model="demo/echo",
        )


def create_conversation(agent: Agent, users: dict[str, User], key: str, title: str, lines: Sequence[Line]) -> Thread:
    """Create a thread of tom with these messages, which a worker indexes for recall."""
    caller = memory_caller(users["tom"])
    columns = {"agent": agent, "agent_key": agent.pk, "agent_owner_id": agent.owner_id, "title": title}
    thread = create_named_thread(caller, key, caller.default_resource, **columns)
    now = timezone.now()
    for position, (days_ago, speaker, text) in enumerate(lines):
        at = now - timedelta(days=days_ago) + timedelta(minutes=2 * position)
        role = "user" if speaker else "assistant"
        rows = parse_wire_message({"role": role, "content": text, "createdAt": at.isoformat()}, "message")
        append_messages(thread, rows, author=Author(users[speaker].pk, speaker) if speaker else None)
        thread.refresh_from_db()
    first, last = (now - timedelta(days=lines[index][0]) for index in (0, -1))
    Thread.objects.filter(pk=thread.pk).update(created_at=first, updated_at=last)
    index_if_recalled(thread)
    return thread
