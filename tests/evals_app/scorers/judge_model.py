"""A model for judges that answers with a given object, and the score of an answer by such a judge."""

import asyncio
import json

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from evals_app.scorers.snapshots import score_by_snapshot

MODEL = {"provider": "judge", "name": "one"}


class Judge:
    """A model that answers with a given object and keeps what it was sent."""

    def __init__(self):
        self.answer = {"reason": "Good.", "pass": True, "score": 0.75}
        self.requests = []
        self.schemas = []

    def respond(self, messages, info):
        parts = [
            str(part.content) for message in messages for part in message.parts if part.part_kind == "user-prompt"
        ]
        self.requests.append("\n".join(parts))
        if info.output_tools:
            self.schemas.append(info.output_tools[0].parameters_json_schema)
            return ModelResponse([ToolCallPart(info.output_tools[0].name, self.answer)])
        return ModelResponse([TextPart(json.dumps(self.answer))])


def score(config, answer):
    return asyncio.run(
        score_by_snapshot({"type": "llm-judge", "model": MODEL, "instructions": "Be strict.", **config}, answer)
    )
