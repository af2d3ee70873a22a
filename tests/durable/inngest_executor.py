"""A server that speaks the protocol of Inngest's SDK: events, registration, signed calls, steps and retries."""

import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from inngest._internal.net import sign_request

SIGNING_KEY = "signkey-test-0123456789abcdef"
MAX_CALLS = 10


class InngestExecutor:
    """An executor that calls the functions of an app for each event that it receives."""

    def __init__(self, app_url: str) -> None:
        self.app_url = app_url
        self.registrations: list[dict] = []
        self.answers: list[tuple[int, object]] = []  # of all calls of functions
        self.threads: list[threading.Thread] = []
        executor = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.reply(executor.register(body) if "/fn/register" in self.path else executor.receive(body))

            def reply(self, content: dict) -> None:
                text = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        for thread in self.threads:
            thread.join(20)
        self.server.shutdown()
        self.server.server_close()

    # --- What the SDK sends

    def register(self, body: dict) -> dict:
        self.registrations.append(body)
        return {"ok": True, "modified": True}

    def receive(self, events: list[dict] | dict) -> dict:
        ids = []
        for event in events if isinstance(events, list) else [events]:
            ids.append(str(uuid.uuid4()))
            self.threads.append(threading.Thread(target=self.perform, args=(event, ids[-1]), daemon=True))
            self.threads[-1].start()
        return {"ids": ids, "status": 200}

    # --- Calls of the app

    def sync(self) -> httpx.Response:
        """Ask the app to register its functions."""
        return httpx.put(self.app_url, headers=self.headers(b""), content=b"", timeout=10)

    def perform(self, event: dict, event_id: str) -> None:
        """Call the function of an event again and again, with the answers of its steps, until it returns."""
        steps: dict[str, object] = {}
        attempt = 0
        for _ in range(MAX_CALLS):
            answer = self.call({**event, "id": event_id}, steps, attempt)
            content = answer.json() if answer.content else None
            self.answers.append((answer.status_code, content))
            if answer.status_code == 206:
                for step in content:
                    if step["op"] == "StepError":
                        attempt += 1
                    else:
                        steps[step["id"]] = {"type": "data", "data": step.get("data")}
            elif answer.status_code == 200:
                return
            else:
                attempt += 1
                time.sleep(0.1)

    def call(self, event: dict, steps: dict[str, object], attempt: int, key: str = SIGNING_KEY) -> httpx.Response:
        body = json.dumps(
            {
                "ctx": {
                    "attempt": attempt,
                    "disable_immediate_execution": False,
                    "run_id": event["id"],
                    "stack": {"stack": list(steps)},
                },
                "event": event,
                "events": [event],
                "steps": steps,
                "use_api": False,
            }
        ).encode()
        address = f"{self.app_url}?fnId=agentcms-perform-run&stepId=step"
        return httpx.post(address, content=body, headers=self.headers(body, key), timeout=10)

    def headers(self, body: bytes, key: str = SIGNING_KEY) -> dict[str, str]:
        return {
            "Content-Type": "application/json",
            "X-Inngest-Signature": sign_request(body, key),
            "X-Inngest-Server-Kind": "cloud",
        }
