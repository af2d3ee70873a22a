"""What the README promises."""

import re
import subprocess
from pathlib import Path

from agentcms.server.processes import PROJECT

README = (PROJECT / "README.md").read_text()


def test_the_first_session_works_as_written(served, tmp_path):
    served.create_user("ada", "--superuser")
    key = served.create_api_key("ada")
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    script = "set -e\n" + "\n".join(blocks)
    script = script.replace("KEY=acms_…", f"KEY={key}").replace("http://127.0.0.1:8000", served.base_url)

    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert '"error"' not in done.stdout
    assert "Stands at the door." in done.stdout


def test_every_setting_of_the_table_is_read_somewhere():
    named = set(re.findall(r"`([A-Z][A-Z_]{3,})`", README.split("## Settings")[1].split("Users and keys")[0]))
    code = "".join(path.read_text() for path in Path(PROJECT, "agentcms").rglob("*.py"))

    assert {name for name in named if f'"{name}"' not in code} == set()


def test_every_setting_that_is_read_stands_in_the_table():
    settings = (PROJECT / "agentcms" / "settings.py").read_text()
    read = set(re.findall(r'environment\.\w+\(\s*"([A-Z_]+)"', settings))

    assert {name for name in read if f"`{name}`" not in README} == set()


def test_every_dependency_is_named():
    project = (PROJECT / "pyproject.toml").read_text()
    runtime = re.findall(r'^    "([a-z0-9-]+)[\[>]', project.split("[project.optional")[0], re.MULTILINE)
    spoken = README.lower().replace("django rest framework", "djangorestframework")

    assert [name for name in runtime if name not in spoken] == []
