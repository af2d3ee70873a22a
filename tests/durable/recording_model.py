"""A model and an embedder over HTTP that record their requests, for processes that tests kill."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from zlib import crc32

DIMENSIONS = 16
PIECES = 3  # of a streamed answer


class RecordingModel:
    """The answers of the model, each with a number of its own, and what was asked for them."""

    def __init__(self, seconds: float = 0.05) -> None:
        self.seconds = seconds  # that an answer takes
        self.requests: dict[str, list[dict]] = {}  # the messages by answer
        self.failing: set[str] = set()  # kinds of requests that are refused
        self.refused = 0
        self.numbers = itertools.count(1)
        self.url = ""

    def answer(self, messages: list[dict]) -> str:
        """Record a request and return its answer. It says whether it is the title or the notes of a thread."""
        text = f"{kind_of(messages)} {next(self.numbers)}."
        self.requests[text] = messages
        return text

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make it the provider `mistral`."""
        return {"MISTRAL_BASE_URL": self.url, "MISTRAL_API_KEY": "recorded", "OUTBOUND_NETWORKS": "127.0.0.0/8"}

    def of_kind(self, kind: str) -> dict[str, list[dict]]:
        return {answer: messages for answer, messages in self.requests.items() if answer.startswith(kind)}


def kind_of(messages: list[dict]) -> str:
    instructions = " ".join(str(message["content"]) for message in messages if message["role"] == "system")
    if "Write a title" in instructions:
        return "Title"
    return "Notes" if "You keep the notes" in instructions else "Answer"


class Handler(BaseHTTPRequestHandler):
    """The routes /v1/chat/completions and /v1/embeddings of a server that has a `model`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            rows = [{"object": "embedding", "index": n, "embedding": vector(t)} for n, t in enumerate(body["input"])]
            self.send({"object": "list", "data": rows, "model": body["model"], "usage": USAGE})
            return
        time.sleep(self.server.model.seconds)
        if kind_of(body["messages"]) in self.server.model.failing:
            self.server.model.refused += 1
            self.send({"message": "Not today.", "type": "invalid_request_error"}, 400)
            return
        text = self.server.model.answer(body["messages"])
        if body.get("stream"):
            self.stream(text)
        else:
            message = {"role": "assistant", "content": text}
            self.send(completion("chat.completion", {"message": message, "finish_reason": "stop"}, usage=USAGE))

    def send(self, body: dict, status: int = 200) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self, text: str) -> None:
        """Send an answer in pieces, over the same time again."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        size = -(-len(text) // PIECES)
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        deltas = [*({"role": "assistant", "content": piece} for piece in pieces), {}]
        for number, delta in enumerate(deltas):
            is_last = number == len(deltas) - 1
            choice = {"delta": delta, "finish_reason": "stop" if is_last else None}
            self.write(completion("chat.completion.chunk", choice, **({"usage": USAGE} if is_last else {})))
            time.sleep(self.server.model.seconds / PIECES)
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def write(self, body: dict) -> None:
        self.wfile.write(b"data: %s\n\n" % json.dumps(body).encode())
        self.wfile.flush()

    def log_message(self, *args: object) -> None:
        pass


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def completion(kind: str, choice: dict, **members: object) -> dict:
    return {
        "id": "a",
        "object": kind,
        "created": 1,
        "model": "recorded",
        "choices": [{"index": 0, **choice}],
        **members,
    }


def vector(text: str) -> list[float]:
    return [((crc32(f"{text}{number}".encode()) % 2000) - 1000) / 1000 for number in range(DIMENSIONS)]


class QuietServer(ThreadingHTTPServer):
    """A server whose clients may be killed."""

    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def recording_model(seconds: float = 0.05) -> Iterator[RecordingModel]:
    """Serve a recording model in threads of this process."""
    model = RecordingModel(seconds)
    with QuietServer(("127.0.0.1", 0), Handler) as server:
        server.model = model
        model.url = f"http://127.0.0.1:{server.server_port}/v1"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield model
        finally:
            server.shutdown()
