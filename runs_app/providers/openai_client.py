"""The client of servers with the Chat Completions API.

Imports the client of OpenAI, which is heavy. Import this module only where a model is built.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar, cast

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk
from pydantic import ValidationError

Answer = TypeVar("Answer")


class ChatClient(AsyncOpenAI):
    """A client that reads the pieces of a streamed answer in compiled code.

    The client of OpenAI constructs them in Python, which costs six hundred calls a piece. It still does so with
    pieces that differ from the specification, as those of some servers do.
    """

    def _process_response_data(self, *, data: object, cast_to: type[Answer], response: Any) -> Answer:
        if cast_to is ChatCompletionChunk:
            with suppress(ValidationError):
                return cast(Answer, ChatCompletionChunk.model_validate(data, strict=True))
        return super()._process_response_data(data=data, cast_to=cast_to, response=response)
