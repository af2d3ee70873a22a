"""The complete answer of a run whose model was asked again by another process."""

import pytest

from runs_app.api.generate_response import generate_response
from runs_app.events.network import NetworkConverter
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


def text(number, words):
    return [("text-start", {"id": number}), ("text-delta", {"id": number, "text": words})]


def test_a_step_has_only_the_text_of_the_answer_that_was_completed():
    finish = ("step-finish", {"stepResult": {"reason": "stop"}, "output": {"usage": {}}})
    discarded = ("step-discarded", {"fromEvent": 2})
    begun = [("step-start", {}), ("reasoning-delta", {"text": "Hm"}), *text("1", "Good d")]
    run = RunFactory(output="Good day.", chunks=[*begun, discarded, *text("1", "Good day."), finish])

    answer = generate_response(run)

    assert [(step["text"], step["reasoningText"]) for step in answer["steps"]] == [("Good day.", "")]
    assert answer["response"]["messages"] == [
        {"role": "assistant", "content": [{"type": "text", "text": "Good day."}]}
    ]


def test_readers_of_a_network_are_told_to_drop_the_text():
    begun = [("step-start", {}), *text("1", "Good d")]
    run = RunFactory(
        output="Good day.", chunks=[*begun, ("step-discarded", {"fromEvent": 2}), *text("1", "Good day.")]
    )
    converter = NetworkConverter(run)

    chunks = [chunk for event in run.events.order_by("number") for chunk in converter.convert(event.data)]

    kinds = [chunk["type"].removeprefix("routing-agent-") for chunk in chunks]
    assert kinds == ["text-start", "text-delta", "step-discarded", "text-start", "text-delta"]
    assert (chunks[2]["payload"]["iteration"], converter.result) == (1, "Good day.")
