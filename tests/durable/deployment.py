"""A web server and a worker as `deploy/start` runs them, which tests kill and start again, and readers of runs."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx

from agentcms.server.valkey import Valkey
from tests.operations.running_copy import rows
from tests.served import Process, Served, wait_until
from tests.served_accounts import prepared

COMMANDS = {
    "web": ["agentcms.server.web"],
    "worker": ["agentcms.server.worker", "--without-beat"],
}
WORKER_WITH_BEAT = ["agentcms.server.worker"]
LIMITS = dict.fromkeys(("RUNS_PER_USER", "RUNS_PER_AGENT", "RUN_STREAMS", "RUN_STREAMS_PER_USER"), "200")
LAST_CHUNKS = ("finish", "error", "abort", "tripwire")
AGENT = "laborer"
PAUSE = 0.2  # seconds that a call works


class Broker:
    """A Valkey server that a test can stop and start again at the same address."""

    def __init__(self, folder: Path) -> None:
        self.server = Valkey(folder)
        self.start()

    def start(self) -> None:
        self.child = self.server.child(os.environ, output=subprocess.DEVNULL)
        self.child.start()
        wait_until(self.server.is_ready, 20, "the broker")

    def kill(self) -> None:
        self.child.kill()
        wait_until(lambda: not self.child.is_running, 10, "the end of the broker")
        self.child.clean_up()

    def remove(self) -> None:
        self.kill()
        self.server.remove_socket()


@contextlib.contextmanager
def conversing_deployment(folder: Path, environment: dict[str, str], **agent: object) -> Iterator["Deployment"]:
    """Run a web server and a worker with a scheduler and an agent, whose model the environment configures."""
    broker = Broker(folder / "valkey")
    with prepared(folder / "var", JOB_LEASE="2", WEB_WORKERS="2", **environment) as copy:
        deployment = Deployment(copy, broker, worker=WORKER_WITH_BEAT)
        try:
            deployment.start("web", "worker")
            deployment.wait_until_ready()
            deployment.create_agent(0, **agent)
            yield deployment
        finally:
            deployment.stop()
            broker.remove()


class Deployment:
    """The processes of a copy. Each part is a process group of its own."""

    def __init__(self, copy: Served, broker: Broker, **commands: list[str]) -> None:
        self.copy = copy
        self.commands = COMMANDS | commands
        self.broker = broker
        self.folder = copy.data_dir
        self.parts: dict[str, Process] = {}
        self.readers: list[RunReader] = []
        self.offset = 0  # of the log, where the last worker began
        copy.environment |= {
            "DJANGO_SETTINGS_MODULE": "tests.durable.settings",
            "DURABLE_FOLDER": str(copy.data_dir),
            "REDIS_URL": broker.server.address,
            "WEB_STOP_TIMEOUT": "15",
            **LIMITS,
        }

    # --- Processes

    def start(self, *names: str) -> None:
        """Start these parts without waiting for them."""
        for name in names:
            if name == "worker":
                self.offset = len(self.copy.log_text())
            command = self.commands[name]
            self.parts[name] = self.copy.start_module(*command, log=self.copy.log, start_new_session=True)

    def wait_until_ready(self, seconds: float = 90) -> None:
        wait_until(self.copy.responds, seconds, f"the web server; see {self.copy.log}")
        wait_until(lambda: " ready." in self.worker_log(), seconds, f"the worker; see {self.copy.log}")

    def worker_log(self) -> str:
        """Return what was logged since the last start of the worker."""
        return self.copy.log_text()[self.offset :]

    def kill(self, *names: str) -> None:
        """Kill all processes of these parts at once, as a power failure would."""
        for name in names:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.parts[name].pid, signal.SIGKILL)
        for name in names:
            self.parts[name].wait(30)

    def terminate(self, *names: str) -> list[int]:
        """Stop these parts as systemd does. Return their exit codes."""
        for name in names:
            self.parts[name].terminate()
        return [self.parts[name].wait(60) for name in names]

    def stop(self) -> None:
        for reader in self.readers:
            reader.stopping.set()
        self.kill(*(name for name, process in self.parts.items() if process.poll() is None))
        for reader in self.readers:
            reader.join(30)

    # --- Runs

    def create_agent(self, calls: int, **fields: object) -> None:
        """Create an agent that calls a tool so many times in each run, one after the other."""
        plan = [*([["work", {"pause": PAUSE}]] for _ in range(calls)), "Done."]
        model = {"provider": "planned", "name": "plan", "plan": plan, "notes_prompt": True}
        body = {"id": AGENT, "name": "Laborer", "instructions": "", "model": model, "tools": ["work"], **fields}
        with self.copy.client(self.copy.keys["root"]) as client:
            answer = client.post("/api/stored/agents", json=body)
        assert answer.status_code == 201, answer.text

    def start_runs(self, count: int) -> list["RunReader"]:
        """Start so many runs, each with a thread that reads it to its end."""
        begun = [RunReader(self) for _ in range(count)]
        self.readers += begun
        for reader in begun:
            reader.start()
        return begun

    def unfinished(self) -> list["RunReader"]:
        return [reader for reader in self.readers if reader.is_alive()]

    # --- Notes

    def notes(self, beginning: str) -> list[list[str]]:
        """Return the words of each note with this beginning."""
        path = self.folder / "notes"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.split(" ") for line in lines if line.startswith(f"{beginning} ")]

    def begun_calls(self, run_id: str) -> list[int]:
        """Return the numbers of the calls of a run in the order in which they began, with those that were repeated."""
        calls = [note[1] for note in self.notes("work") if note[2] == "begins" and note[1].startswith(run_id)]
        return [int(re.search(r":c(\d+)-0$", call)[1]) for call in calls]

    def processes_of(self, run_id: str) -> set[int]:
        """Return the IDs of the processes that executed a call of this run."""
        return {int(note[-1]) for note in self.notes("work") if note[1].startswith(run_id)}


class RunReader(threading.Thread):
    """A reader that starts a run and reads its events to the end, through any number of lost connections."""

    def __init__(self, deployment: Deployment) -> None:
        self.key = uuid.uuid4().hex  # the message of the run and its idempotency key
        super().__init__(name=self.key, daemon=True)
        self.deployment = deployment
        self.run_id = ""
        self.numbers: list[int] = []
        self.chunks: list[dict] = []
        self.connections = 0
        self.unexpected: list[str] = []  # answers that are neither a stream nor a request to come back later
        self.stopping = threading.Event()

    @property
    def is_over(self) -> bool:
        return bool(self.chunks) and self.chunks[-1]["type"] in LAST_CHUNKS

    def run(self) -> None:
        with self.deployment.copy.client(self.deployment.copy.keys["root"]) as client:
            client.timeout = httpx.Timeout(15)
            while not (self.is_over or self.stopping.is_set()):
                with contextlib.suppress(httpx.HTTPError):
                    self.read(client)
                if not self.is_over:  # a stream also ends where a run waits for people
                    self.stopping.wait(0.1)

    def read(self, client: httpx.Client) -> None:
        """Start the run, or read on after the last event that was received."""
        headers = {"Accept": "text/event-stream"}
        if not self.run_id:
            headers["Idempotency-Key"] = self.key  # so that a lost answer starts no second run
            request = ("POST", f"/api/agents/{AGENT}/stream", {"messages": self.key})
        else:
            headers["Last-Event-ID"] = str(self.numbers[-1] if self.numbers else 0)
            request = ("GET", f"/api/runs/{self.run_id}/stream", None)
        with client.stream(request[0], request[1], json=request[2], headers=headers) as answer:
            if answer.status_code != 200:
                if answer.status_code not in (502, 503):
                    self.unexpected.append(f"{answer.status_code} {answer.read()!r}")
                self.stopping.wait(0.2)
                return
            self.connections += 1
            self.run_id = answer.headers["X-Run-ID"]
            self.receive(answer)

    def receive(self, answer: httpx.Response) -> None:
        number = None
        for line in answer.iter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("data: {") and number is not None:
                self.numbers.append(number)
                self.chunks.append(json.loads(line[6:]))
                number = None

    # --- Checks

    def events(self) -> list[dict]:
        """Return the stored events of the run."""
        events, client = [], self.deployment.copy.client(self.deployment.copy.keys["root"])
        with client:
            while True:
                body = client.get(f"/api/runs/{self.run_id}/events?after={len(events)}").json()
                events += body["events"]
                if not body["hasMore"]:
                    return events

    def call_ids(self, kind: str) -> list[str]:
        return [chunk["payload"]["toolCallId"] for chunk in self.chunks if chunk["type"] == kind]

    def assert_complete(self, calls: int) -> dict:
        """Check that the run succeeded, that nothing is missing or there twice, and that no finished step repeated."""
        with self.deployment.copy.client(self.deployment.copy.keys["root"]) as client:
            run = client.get(f"/api/runs/{self.run_id}").json()
        assert (run["status"], run["error"]) == ("succeeded", None), run
        assert self.unexpected == []
        assert self.numbers == list(range(1, len(self.events()) + 1))
        for kind in ("tool-call", "tool-result"):
            assert self.call_ids(kind) == [f"c{number}-0" for number in range(calls)]
        begun = self.deployment.begun_calls(self.run_id)
        assert begun == sorted(begun)  # a repeated step that was finished would stand after a later one
        assert set(begun) == set(range(calls))
        requests = [int(note[2]) for note in self.deployment.notes("request") if note[1] == self.key]
        assert requests == sorted(requests)
        assert set(requests) == set(range(calls + 1))
        return run


def wait_for_readers(readers: list[RunReader], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for reader in readers:
        reader.join(max(0.0, deadline - time.monotonic()))
        assert not reader.is_alive(), f"{reader.name} {reader.run_id} {reader.numbers[-3:]} {reader.unexpected[-3:]}"


def wait_for_progress(deployment: Deployment) -> None:
    """Wait until no run has lost two processes since its last finished step. With the third it would fail."""
    question = "SELECT COUNT(*) FROM runs_app_agentrun WHERE finished_at IS NULL AND attempts > 1"
    wait_until(lambda: rows(deployment.copy, question) == [(0,)], 120, f"progress; see {deployment.copy.log}")
