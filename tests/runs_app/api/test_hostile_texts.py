"""Texts that would hold the interpreter if a pattern searched them again from each of their letters."""

import time

import pytest

from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")

MASK = [{"key": "mask-email"}]
LETTERS = 250_000  # took over a minute


@pytest.mark.parametrize("unit", ["a", "a.", "a@"])
def test_a_long_text_passes_the_processors_at_once(unit):
    AgentFactory(id="concierge", model=DEMO, input_processors=MASK, output_processors=MASK)
    started = time.process_time()

    answer = Caller(api_key(member("editor"))).post(
        "/api/agents/concierge/generate", {"messages": unit * (LETTERS // len(unit))}
    )

    assert answer.status_code == 200
    assert time.process_time() - started < 20
