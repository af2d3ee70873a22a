"""The settings of models and the options of runs that have an input of their own."""

from __future__ import annotations

from agents_app.forms.objects.members import Member

TOP_K = Member("topK", "Top K")
SEED_MEMBER = Member("seed", "Seed")
PRESENCE_PENALTY = Member("presencePenalty", "Presence penalty", help="From -2 to 2.")
FREQUENCY_PENALTY = Member("frequencyPenalty", "Frequency penalty", help="From -2 to 2.")
STOP_SEQUENCES = Member("stopSequences", "Stop sequences", "lines", help="One per line.")
THINKING = Member(
    "thinking",
    "Thinking",
    "choice",
    choices=(
        ("true", "On"),
        ("false", "Off"),
        *((f'"{level}"', level.capitalize()) for level in ("minimal", "low", "medium", "high", "xhigh", "max")),
    ),
)

MODEL_MEMBERS = (TOP_K, SEED_MEMBER, PRESENCE_PENALTY, FREQUENCY_PENALTY, THINKING, STOP_SEQUENCES)

OPTION_MEMBERS = (
    Member("maxSteps", "Max steps", help="Requests to the model in one run."),
    Member(
        "toolChoice",
        "Tool choice",
        "choice",
        choices=(('"auto"', "Automatic"), ('"none"', "No tools"), ('"required"', "At least one tool")),
    ),
    Member("temperature", "Temperature", help="From 0 to 2."),
    Member("topP", "Top P", help="From 0 to 1."),
    Member("maxTokens", "Max tokens"),
    Member("activeTools", "Active tools", "lines", help="Only these tools, one key per line."),
)

METADATA_MEMBERS = (
    Member("tags", "Tags", "tags", help="Separated by commas. The list of agents can be filtered by them."),
)
