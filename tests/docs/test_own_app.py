"""The app that docs/running.md describes, with the tool of the README and the reranker of docs/knowledge.md."""

import os
import re
import subprocess
import sys

from agentcms.server.processes import PROJECT
from tests.served import TEST_VARIABLES

FIND_ENTRIES = """
from agents_app.registry import Kind, registry
from knowledge_app.search.rerank import registered_rerankers
print(registry.get(Kind.TOOL, "order-status").title, "shortest" in registered_rerankers())
"""


def find_example(document: str, words: str) -> str:
    """Return the Python example of a document that has these words."""
    blocks = re.findall(r"```python\n(.*?)```", (PROJECT / document).read_text(), re.DOTALL)
    (example,) = [block for block in blocks if words in block]
    return example


def test_an_app_outside_of_the_project_registers_its_entries(tmp_path):
    app = tmp_path / "shop"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "settings.py").write_text(find_example("docs/running.md", "INSTALLED_APPS"))
    tools = find_example("README.md", "agents_app.registry") + find_example("docs/knowledge.md", "@reranker")
    (app / "agent_tools.py").write_text(tools)
    environment = {name: value for name, value in os.environ.items() if name not in TEST_VARIABLES}
    environment |= {"DATA_DIR": str(tmp_path / "var"), "PYTHONPATH": str(tmp_path)}
    environment["DJANGO_SETTINGS_MODULE"] = "shop.settings"
    command = [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", FIND_ENTRIES]

    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=120)

    assert (done.stdout, done.stderr) == ("Order status True\n", "")
