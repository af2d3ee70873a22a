"""Conversion of arbitrary values to stored JSON."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from agents_app.registry import Entry, Kind, registry
from runs_app.events.stream_chunks import (
    MAX_CHUNK_VALUE_LENGTH,
    append_delta,
    build_chunk,
    encode_chunk,
    to_storable_json,
    truncate_value,
)
from tests.factories import AgentFactory, member
from tests.runs import DEMO, chunks, start_run, wait_for_end


@dataclass
class Place:
    name: str
    seen: datetime


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a?b"),
        ({"a\0": ["\ud800"]}, {"a\ufffd": ["?"]}),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (2**80, str(2**80)),
        (Decimal("0.1"), "0.1"),
        (b"\xff\x00", "_wA="),
        (Place("Lisbon", datetime(2026, 1, 2, tzinfo=UTC)), {"name": "Lisbon", "seen": "2026-01-02T00:00:00Z"}),
        ({1, 2}, [1, 2]),
        (None, None),
        ({"text": "👋 عربي"}, {"text": "👋 عربي"}),
    ],
    ids=[
        "NUL",
        "half a pair",
        "inside",
        "NaN",
        "infinite",
        "large",
        "decimal",
        "bytes",
        "a class",
        "a set",
        "none",
        "text",
    ],
)
def test_a_value_is_converted_to_json_for_both_databases(value, stored):
    assert to_storable_json(value) == stored


def test_a_too_deep_value_becomes_a_text():
    deep: list = []
    for _ in range(80):
        deep = [deep]

    json.dumps(to_storable_json(deep))
    assert "[" in json.dumps(to_storable_json(deep))


def test_a_long_value_is_truncated_with_its_length():
    assert truncate_value("x" * MAX_CHUNK_VALUE_LENGTH) == "x" * MAX_CHUNK_VALUE_LENGTH
    assert truncate_value("x" * (MAX_CHUNK_VALUE_LENGTH + 1)).endswith("… (200,001 characters in total)")
    assert truncate_value({"a": "x" * MAX_CHUNK_VALUE_LENGTH}).startswith('{"a": "xxx')


def test_deltas_of_one_text_are_combined_and_others_are_not():
    last = build_chunk("text-delta", id="1-0", text="Hel")

    assert append_delta(last, build_chunk("text-delta", id="1-0", text="lo"))
    assert last["payload"]["text"] == "Hello"
    assert not append_delta(last, build_chunk("text-delta", id="1-1", text="x"))
    assert not append_delta(last, build_chunk("reasoning-delta", id="1-0", text="x"))
    assert not append_delta(build_chunk("text-start", id="1-0"), build_chunk("text-delta", id="1-0", text="x"))


def test_the_stream_is_ascii():
    assert encode_chunk("r", build_chunk("text-delta", id="1", text="👋")).isascii()


def test_the_object_of_an_answer_is_where_the_published_client_expects_it():
    sent = json.loads(encode_chunk("r", build_chunk("object-result", object={"city": "Lisbon"})))

    assert (sent["type"], sent["object"]) == ("object-result", {"city": "Lisbon"})


@pytest.mark.usefixtures("idle_engine")
def test_a_tool_can_return_any_value():
    def oddity(text: str = "") -> dict:
        return {"nul": "a\0b", "nan": float("nan"), "big": 2**80}

    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    registry.add(Entry(Kind.TOOL, "oddity", "Oddity", schema=schema, target=oddity))

    run = wait_for_end(start_run(AgentFactory(model=DEMO, tools=["oddity"]), member("editor"), "Use oddity"))

    assert run.status == "succeeded", run.error
    result = chunks(run, "tool-result")[0]["payload"]["result"]
    assert result["nul"] == "a\ufffdb"
    assert result["big"] == str(2**80)
