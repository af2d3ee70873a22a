"""The examples of docs/memory.md, which people run after those of docs/api.md."""

import re
import subprocess
from pathlib import Path

from agentcms.server.processes import PROJECT
from tests.docs.test_api import EXAMPLES as EARLIER_EXAMPLES
from tests.served import Served

DOCS = (PROJECT / "docs" / "memory.md").read_text()
EXAMPLES = [text for text in re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL) if text.startswith("curl ")]


def test_the_examples_of_the_memory_guide_work(own_served: Served, tmp_path: Path):
    lines = [
        "set -e",
        f"KEY={own_served.keys['root']} CMS={own_served.base_url}",
        *EARLIER_EXAMPLES,
        "echo",
        *EXAMPLES,
    ]

    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
    assert len(EXAMPLES) == 2
    assert '"error":"' not in done.stdout, done.stdout
    assert "You said: My colour is blue." in done.stdout
    assert '"accepted":true' in done.stdout
