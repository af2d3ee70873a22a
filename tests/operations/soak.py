"""Mixed load on a running copy for a long time, with kills.

`make drill` runs it for an hour. `python -m tests.operations.soak MINUTES` runs it alone and writes a plot.
"""

import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.operations.running_copy import ConcurrentEditors, assert_consistent
from tests.served import Served, serving

AGENTS = "/api/stored/agents"
MODEL = {"provider": "demo", "name": "echo"}
KILLED = ("agentcms.server.web", "agentcms.server.worker", "valkey-server")
SAMPLE_SECONDS = 5.0
# Every version stays, so that each acknowledged edit can be found.
VARIABLES = {"AGENT_VERSION_LIMIT": "1000000", "RUNS_PER_USER": "100", "JOB_LEASE": "10"}


@dataclass
class Soak:
    """The load, and what was seen."""

    copy: Served
    seconds: float
    kill_every: float
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    statuses: Counter[int] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)
    kills: int = 0
    unanswered: int = 0

    def run(self) -> None:
        """Run the load for the given time and stop it. Then nothing acknowledged may be lost."""
        self.began = time.monotonic()
        with self.copy.client(self.copy.keys["root"]) as client:
            client.post(AGENTS, json={"id": "talker", "name": "T", "instructions": "x", "model": MODEL})
            client.post(AGENTS, json={"id": "published", "name": "P", "instructions": "0", "model": MODEL})
        loads = [self.publish, self.generate, self.drop_streams, self.import_agents, self.browse]
        threads = [threading.Thread(target=self.repeat, args=[load]) for load in loads]
        threads += [threading.Thread(target=work) for work in (self.kill_regularly, self.sample)]
        with ConcurrentEditors(self.copy, 2, pause=0.2) as self.editors:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for response in self.editors.refused:
            self.note(response)

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.began + self.seconds

    def repeat(self, load: Callable[[httpx.Client], None]) -> None:
        with self.copy.client(self.copy.keys["root"]) as client:
            while not self.is_over:
                try:
                    load(client)
                except httpx.HTTPError:
                    self.unanswered += 1
                time.sleep(0.2)

    def note(self, response: httpx.Response) -> httpx.Response:
        """Count a response. A 5xx other than 503 with `Retry-After` is unexpected."""
        self.statuses[response.status_code] += 1
        is_retryable = response.status_code == 503 and "Retry-After" in response.headers
        if response.status_code >= 500 and not is_retryable:
            self.unexpected.append(f"{response.status_code} {response.request.url.path} {response.text[:300]}")
        return response

    # --- Loads

    def publish(self, client: httpx.Client) -> None:
        text = str(self.chance.random())
        self.note(client.patch(f"{AGENTS}/published", json={"instructions": text, "autoPublish": False}))
        versions = self.note(client.get(f"{AGENTS}/published/versions")).json().get("versions") or []
        if versions:
            self.note(client.post(f"{AGENTS}/published/versions/{versions[0]['id']}/activate", json={}))

    def generate(self, client: httpx.Client) -> None:
        self.note(client.post("/api/agents/talker/generate", json={"messages": "Hello"}))

    def drop_streams(self, client: httpx.Client) -> None:
        """Read the begin of a stream and close the connection."""
        with client.stream("POST", "/api/agents/talker/stream", json={"messages": "word " * 200}) as response:
            self.statuses[response.status_code] += 1
            next(response.iter_bytes(), None)

    def import_agents(self, client: httpx.Client) -> None:
        lines = [{"id": f"imported-{self.chance.randrange(50)}", "name": "I", "instructions": "x", "model": MODEL}]
        content = "\n".join(json.dumps(line) for line in lines)
        self.note(
            client.post("/api/stored/agent-import", content=content, headers={"Content-Type": "application/x-ndjson"})
        )
        time.sleep(2)

    def browse(self, client: httpx.Client) -> None:
        for path in (AGENTS, f"{AGENTS}/talker", "/api/agents", "/sign-in", "/healthz"):
            self.note(client.get(path))

    # --- Faults and figures

    def kill_regularly(self) -> None:
        while not self.is_over:
            time.sleep(min(self.kill_every, max(0, self.began + self.seconds - time.monotonic())))
            processes = self.copy.processes_matching(self.chance.choice(KILLED))
            if processes and not self.is_over:
                self.kills += 1
                for process in processes:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.kill()

    def sample(self) -> None:
        """Note the memory, the connections and the open files of all processes from time to time."""
        while not self.is_over:
            sample = {"seconds": time.monotonic() - self.began, "megabytes": 0.0, "connections": 0.0, "files": 0.0}
            for process in self.copy.processes():
                with contextlib.suppress(psutil.Error):
                    sample["megabytes"] += process.memory_full_info().pss / 2**20
                    sample["connections"] += len(process.net_connections())
                    sample["files"] += process.num_fds()
            self.samples.append(sample)
            time.sleep(SAMPLE_SECONDS)

    def growth(self, figure: str) -> float:
        """Return how many times larger a figure is in the last quarter than in the second."""
        values = [sample[figure] for sample in self.samples]
        quarter = max(1, len(values) // 4)
        return median(values[-quarter:]) / median(values[quarter : 2 * quarter] or values)

    def figures(self) -> dict[str, Any]:
        """Return what was seen, for the plot in the documentation."""
        return {
            "database": "PostgreSQL" if self.copy.environment.get("DATABASE_URL") else "SQLite",
            "minutes": round(self.seconds / 60, 1),
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "kills": self.kills,
            "unanswered": self.unanswered + self.editors.unanswered,
            "acknowledged edits": self.editors.count,
            "growth": {name: round(self.growth(name), 2) for name in ("megabytes", "connections", "files")},
            "samples": self.samples,
        }

    def assert_sound(self) -> None:
        """Assert that nothing was lost, and that only expected errors were answered."""
        assert self.unexpected == []
        self.editors.assert_nothing_lost()
        assert_consistent(self.copy)


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def main() -> None:
    """Run the soak for the minutes of the command line and print what was seen, as JSON."""
    minutes = float(sys.argv[1])
    with (
        tempfile.TemporaryDirectory(prefix="agentcms-soak-") as folder,
        serving(Path(folder) / "var", **VARIABLES) as copy,
    ):
        copy.create_user("root", "--superuser")
        copy.keys["root"] = copy.create_api_key("root")
        soak = Soak(copy, minutes * 60, kill_every=60)
        soak.run()
        Path(sys.argv[2] if len(sys.argv) > 2 else "soak.json").write_text(json.dumps(soak.figures(), indent=1))
        soak.assert_sound()
    print(json.dumps({**soak.figures(), "samples": len(soak.samples)}, indent=1))


if __name__ == "__main__":
    main()
