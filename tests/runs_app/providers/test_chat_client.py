"""The pieces of streamed answers, as our client of Chat Completions servers reads them."""

import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk

from runs_app.providers.openai_client import ChatClient

CHOICE = {"index": 0, "delta": {"role": "assistant", "content": "Hello"}, "finish_reason": None}
PIECE = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "any", "choices": [CHOICE]}
CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "now", "arguments": "{}"}}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
PIECES = {
    "as specified": PIECE,
    "with usage": {**PIECE, "choices": [], "usage": USAGE},
    "with a call": {**PIECE, "choices": [{**CHOICE, "delta": {"tool_calls": [CALL]}}]},
    "with a member of its own": {**PIECE, "choices": [{**CHOICE, "delta": {"reasoning_content": "Hm"}}]},
    "with a finish reason of its own": {**PIECE, "choices": [{**CHOICE, "finish_reason": "eos"}]},
    "with a tier of its own": {**PIECE, "service_tier": "on_demand"},
    "without a time": {name: value for name, value in PIECE.items() if name != "created"},
    "with a number as text": {**PIECE, "choices": [{**CHOICE, "delta": {"content": 5}}]},
    "with null choices": {**PIECE, "choices": None},
}


def read(client_class, piece):
    client = client_class(base_url="http://127.0.0.1:1/v1", api_key="none")
    chunk = client._process_response_data(data=piece, cast_to=ChatCompletionChunk, response=None)
    return chunk, chunk.model_dump(exclude_unset=True, warnings=False)


@pytest.mark.parametrize("name", PIECES)
def test_pieces_are_read_as_the_client_of_openai_reads_them(name):
    chunk, members = read(ChatClient, PIECES[name])
    other, expected = read(AsyncOpenAI, PIECES[name])

    assert members == expected
    assert type(chunk) is type(other)
    assert [type(choice) for choice in chunk.choices or []] == [type(choice) for choice in other.choices or []]


def test_a_piece_as_specified_is_not_constructed_in_python(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("constructed")

    monkeypatch.setattr(AsyncOpenAI, "_process_response_data", refuse)

    assert read(ChatClient, PIECE)[0].choices[0].delta.content == "Hello"
