"""A dozen agents with believable histories, to look at and play with.

Each agent has a beginning and steps: how many days ago, who, what, and with which words. An `edit` names fields; where
it says `replace` it changes a passage of the instructions, where it says `add` it appends a paragraph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ADA, MAYA, TOM = "ada", "maya", "tom"

# Username, full name, superuser, and the role for each owner.
PEOPLE: list[tuple[str, str, bool, dict[str, str]]] = [
    (ADA, "Ada Lindqvist", True, {}),
    (MAYA, "Maya Okafor", False, {"": "publisher", "support": "manager", "newsroom": "publisher"}),
    (TOM, "Tom Weber", False, {"": "editor", "support": "editor", "engineering": "viewer"}),
]


@dataclass(frozen=True)
class Step:
    """One act in an agent's history."""

    days_ago: float
    who: str
    act: str  # edit, draft, activate, restore, name
    message: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    name: str = ""
    pinned: bool = False


@dataclass(frozen=True)
class Story:
    """An agent as it began, and what happened to it."""

    id: str
    owner_id: str
    days_ago: float
    who: str
    fields: dict[str, Any]
    steps: list[Step] = field(default_factory=list)


def edit(days_ago: float, who: str, message: str, **fields: Any) -> Step:
    return Step(days_ago, who, "edit", message, fields)


def draft(days_ago: float, who: str, message: str, **fields: Any) -> Step:
    return Step(days_ago, who, "draft", message, fields)


def activate(days_ago: float, who: str, number: int, message: str) -> Step:
    return Step(days_ago, who, "activate", message, number=number)


def restore(days_ago: float, who: str, number: int) -> Step:
    return Step(days_ago, who, "restore", number=number)


def name(number: int, label: str, *, pinned: bool = False) -> Step:
    return Step(0, MAYA, "name", number=number, name=label, pinned=pinned)


STORIES = [
    Story(
        "support-triage",
        "support",
        92,
        MAYA,
        {
            "name": "Support triage",
            "description": "Reads a new ticket, picks the queue and writes the first answer.",
            "instructions": """You are the first reader of every support ticket of {{company}}.

Do three things, in this order:
1. Decide which queue the ticket belongs to: billing, login, delivery or general.
2. Decide how urgent it is. A customer who cannot work is urgent.
3. Write a first answer of at most five sentences.

Be warm and plain. Never promise a refund. Never ask for a password.""",
            "model": {"provider": "openai", "name": "gpt-5.6-luna", "temperature": 0.3},
            "tools": ["word-count"],
            "workflows": ["triage-ticket"],
            "metadata": {"team": "support", "language": "en", "reviewed": True},
        },
        [
            edit(88, TOM, "Search before answering", tools=["word-count", "text-search"]),
            edit(
                81,
                MAYA,
                "Say what happens next",
                add='End with what happens next and by when: "We answer within {{hours}} hours."',
            ),
            edit(70, TOM, "Keep the thread in mind", memory="last-messages"),
            edit(
                58,
                MAYA,
                "Newer model for the spring campaign",
                model={"provider": "openai", "name": "gpt-6-luna", "temperature": 0.3},
            ),
            name(5, "Spring campaign", pinned=True),
            edit(
                41,
                MAYA,
                "Measure the length of answers",
                scorers={"answer-length": {"sampling": {"type": "ratio", "rate": 0.2}}},
            ),
            edit(22, MAYA, "Shorter answers", replace=("at most five sentences", "at most three sentences")),
            activate(20, MAYA, 6, "Customers found the short answers curt"),
            edit(9, MAYA, "Four sentences are enough", replace=("at most five sentences", "at most four sentences")),
            edit(
                2.2,
                MAYA,
                "Delivery has a queue of its own in the north",
                replace=("billing, login, delivery or general", "billing, login, delivery, delivery-north or general"),
            ),
        ],
    ),
    Story(
        "reply-drafter",
        "support",
        64,
        MAYA,
        {
            "name": "Reply drafter",
            "description": "Drafts a full answer for a person to check and send.",
            "instructions": """Draft an answer to the customer for {{agent_name}} to check and send.

Use the facts in the ticket and in the knowledge base, and nothing else. Where a fact is missing, leave a gap in square brackets and say what belongs there.

Tone: like a helpful colleague at the next desk.""",
            "model": {"provider": "anthropic", "name": "claude-sonnet-5-5", "temperature": 0.4},
            "tools": ["text-search"],
            "agents": ["support-triage", "proofreader"],
            "memory": "last-messages",
            "metadata": {"team": "support", "language": "en"},
        },
        [
            edit(
                50,
                TOM,
                "Cite the article",
                add="Name the article of the knowledge base that each fact comes from, in square brackets.",
            ),
            edit(
                37,
                MAYA,
                "Check sources in every second answer",
                scorers={"cites-source": {"sampling": {"type": "count", "count": 2}}},
            ),
            name(3, "Before the new tone", pinned=True),
            draft(
                3.1,
                TOM,
                "Try a lighter tone",
                replace=(
                    "like a helpful colleague at the next desk",
                    "light and quick, like a helpful colleague at the next desk",
                ),
            ),
            draft(1.4, TOM, "And greet by first name", add="Greet the customer by first name."),
        ],
    ),
    Story(
        "refund-clerk",
        "support",
        45,
        MAYA,
        {
            "name": "Refund clerk",
            "description": "Explains the refund policy and prepares the form.",
            "instructions": """Explain the refund policy in plain words and prepare the refund form.

The policy in short: 30 days, unused, with the receipt. Faulty goods: 2 years.
You prepare; a person decides. Say so whenever money is mentioned.""",
            "model": {"provider": "openai", "name": "gpt-6-luna"},
            "tools": ["calculator", "current-time", "send-notice"],
            "input_processors": [{"key": "trim-whitespace"}, {"key": "mask-email"}],
            "metadata": {"team": "support", "risk": "money"},
        },
        [
            edit(33, MAYA, "Holiday period: 60 days", replace=("30 days", "60 days")),
            restore(11, MAYA, 1),
        ],
    ),
    Story(
        "headline-writer",
        "newsroom",
        120,
        ADA,
        {
            "name": "Headline writer",
            "description": "Five headlines for an article, each with a different angle.",
            "instructions": """Write five headlines for the article.

Each takes another angle: the person, the number, the place, the question, the consequence.
At most 60 characters each. No puns on names. Nothing that the article does not say.""",
            "model": {"provider": "anthropic", "name": "claude-haiku-5-5", "temperature": 0.9},
            "tools": ["word-count"],
            "metadata": {"desk": "online", "languages": ["en"]},
        },
        [
            edit(
                111,
                MAYA,
                "No clickbait",
                add="Never tease: whoever reads only the headline should be rightly informed.",
            ),
            edit(96, ADA, "Colder", model={"provider": "anthropic", "name": "claude-haiku-5-5", "temperature": 0.7}),
            edit(
                77, MAYA, "Room for the regional edition", replace=("At most 60 characters", "At most 70 characters")
            ),
            edit(
                54,
                MAYA,
                "The bigger model writes better questions",
                model={"provider": "anthropic", "name": "claude-sonnet-5-5", "temperature": 0.7},
            ),
            name(5, "Election night", pinned=True),
            edit(31, MAYA, "Two languages", metadata={"desk": "online", "languages": ["en", "sv"]}),
            activate(30, MAYA, 5, "Swedish headlines were too long"),
            edit(17, MAYA, "Say the place in full", add="Write place names in full."),
        ],
    ),
    Story(
        "fact-checker",
        "newsroom",
        75,
        MAYA,
        {
            "name": "Fact checker",
            "description": "Lists every claim of a text with what would prove it.",
            "instructions": """List every claim in the text that could be wrong.

For each: the sentence, the kind of claim (number, name, date, quote, cause), and the source that would prove it.
Do not judge whether it is true. Do not rewrite the text.""",
            "model": {"provider": "google", "name": "gemini-4-argon", "temperature": 0},
            "tools": ["extract-links", "text-search"],
            "scorers": {"cites-source": {"sampling": {"type": "ratio", "rate": 1}}},
            "default_options": {"maxSteps": 8},
            "metadata": {"desk": "investigations"},
        },
        [
            edit(60, MAYA, "Numbers first", add="Order the list by kind: numbers first, quotes last."),
            edit(28, ADA, "Let it compute", tools=["extract-links", "text-search", "calculator"]),
        ],
    ),
    Story(
        "newsletter",
        "newsroom",
        38,
        MAYA,
        {
            "name": "Morning newsletter",
            "description": "Turns the night's articles into a letter that is read over coffee.",
            "instructions": """Write the morning letter for {{date}} from the articles below.

- One paragraph on what matters most today.
- Three short items, each with a link.
- One thing to smile about.

200 to 250 words. First person plural. No exclamation marks.""",
            "model": {"provider": "mistral", "name": "mistral-large-latest", "temperature": 0.6},
            "tools": ["current-time", "word-count"],
            "agents": ["headline-writer", "proofreader"],
            "output_processors": [{"key": "trim-whitespace"}],
            "metadata": {"desk": "online", "sends": "06:30"},
        },
        [
            edit(30, MAYA, "Shorter on Sundays", add="On Sundays, 120 words and no items."),
            draft(0.4, MAYA, "Weather at the end?", add="Close with the weather in one sentence."),
        ],
    ),
    Story(
        "code-reviewer",
        "engineering",
        100,
        ADA,
        {
            "name": "Code reviewer",
            "description": "Reads a change and says what would break, what is unclear and what is good.",
            "instructions": """Review the change below as a colleague who will maintain it.

Say, in this order:
1. What breaks, with the input that breaks it.
2. What a reader will not understand in a year.
3. What is good, briefly.

Do not comment on formatting. If nothing is wrong, say so in one sentence.""",
            "model": {"provider": "anthropic", "name": "claude-opus-5-5", "temperature": 0.2, "maxTokens": 4000},
            "tools": ["text-search"],
            "default_options": {"maxSteps": 12, "toolChoice": "auto"},
            "metadata": {"repositories": {"api": {"strict": True}, "site": {"strict": False}}},
        },
        [
            edit(
                85,
                ADA,
                "Ask for the failing input",
                replace=(
                    "What breaks, with the input that breaks it.",
                    "What breaks, with the smallest input that breaks it.",
                ),
            ),
            edit(
                62,
                ADA,
                "Two repositories more",
                metadata={
                    "repositories": {
                        "api": {"strict": True},
                        "site": {"strict": False},
                        "docs": {"strict": False},
                        "jobs": {"strict": True},
                    }
                },
            ),
            edit(
                43,
                ADA,
                "Security has its own point",
                replace=("2. What a reader", "2. What an attacker could use.\n3. What a reader"),
            ),
            edit(42.9, ADA, "Renumber", replace=("3. What is good", "4. What is good")),
            name(5, "Security pass", pinned=True),
            edit(
                13,
                ADA,
                "More room",
                model={"provider": "anthropic", "name": "claude-opus-5-5", "temperature": 0.2, "maxTokens": 8000},
            ),
        ],
    ),
    Story(
        "incident-scribe",
        "engineering",
        52,
        ADA,
        {
            "name": "Incident scribe",
            "description": "Keeps the timeline of an incident and writes the report afterwards.",
            "instructions": """You keep the minutes of an incident.

During it: one line per event with the time in UTC, who, and what. Ask when a time is missing.
After it: the report, with impact, timeline, cause, and what we change. Name systems, not people.""",
            "model": {"provider": "openai", "name": "gpt-6.1-sol"},
            "tools": ["current-time", "send-notice"],
            "workflows": ["summarise-thread"],
            "input_processors": [{"key": "mask-email"}],
            "memory": "last-messages",
            "metadata": {"channel": "#incidents"},
        },
        [
            edit(
                26,
                ADA,
                "Blameless, in so many words",
                add="If a person is named in a message, write their role instead.",
            )
        ],
    ),
    Story(
        "sql-helper",
        "engineering",
        34,
        ADA,
        {
            "name": "SQL helper",
            "description": "Turns a question into a query and explains it.",
            "instructions": """Turn the question into one SELECT for PostgreSQL, then explain it line by line.

Never write to the database. Always LIMIT 100. Say which indexes help.""",
            "model": {"provider": "openai", "name": "gpt-6.1-terra", "temperature": 0},
            "tools": ["calculator", "run-sql"],
            "metadata": {"schema": "warehouse"},
        },
        [
            edit(
                19,
                ADA,
                "Explain the plan too",
                replace=("explain it line by line", "explain it and its plan line by line"),
            )
        ],
    ),
    Story(
        "meeting-notes",
        "",
        68,
        TOM,
        {
            "name": "Meeting notes",
            "description": "Decisions, tasks and open questions from a transcript.",
            "instructions": """From the transcript, write three lists: decisions, tasks (who, what, by when), open questions.

Leave out everything else. Where nobody took a task, write "nobody yet".""",
            "model": {"provider": "openai", "name": "gpt-6-luna", "temperature": 0.2},
            "workflows": ["summarise-thread"],
            "metadata": {"languages": ["en", "de"]},
        },
        [
            edit(
                47,
                MAYA,
                "Questions first",
                replace=(
                    "decisions, tasks (who, what, by when), open questions",
                    "open questions, decisions, tasks (who, what, by when)",
                ),
            ),
            restore(46, MAYA, 1),
            edit(
                15, MAYA, "Quote decisions word for word", add="Quote the sentence with which each decision was made."
            ),
        ],
    ),
    Story(
        "translator-de",
        "",
        27,
        MAYA,
        {
            "name": "Translator to German",
            "description": "Übersetzt ins Deutsche und erklärt, was sich nicht übersetzen lässt.",
            "instructions": """Translate the text into German as it is written today.

Keep names, numbers and layout. Use "Sie" unless the text is for children.
Below the translation, list what could not be carried over: wordplay, idioms, double meanings — each with a suggestion.""",
            "model": {"provider": "mistral", "name": "mistral-small-latest", "temperature": 0.3},
            "agents": ["proofreader"],
            "metadata": {"target": "de", "formal": True},
        },
        [edit(12, MAYA, "Swiss spelling on request", add="If the reader is in Switzerland, write ss instead of ß.")],
    ),
    Story(
        "storyteller",
        "",
        6,
        TOM,
        {
            "name": "Storyteller",
            "description": "Needs no key: the built-in demo model answers, and says so.",
            "instructions": """Tell a story of one hundred words about {{subject}}.

Begin in the middle. End before the end. 🌒""",
            "model": {"provider": "demo", "name": "storyteller"},
            "tools": ["word-count", "current-time"],
        },
        [
            edit(
                4,
                TOM,
                "Keep an eye on the length",
                scorers={"answer-length": {"sampling": {"type": "ratio", "rate": 1}}},
            ),
            draft(0.6, MAYA, "Let somebody read it over", agents=["proofreader"]),
        ],
    ),
]
