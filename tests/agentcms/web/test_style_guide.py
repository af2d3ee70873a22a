"""The pages of the style guide."""

import os
import subprocess
import sys

from agentcms.server.processes import PROJECT


def test_every_style_guide_page_is_rendered_without_a_database(tmp_path):
    command = [sys.executable, "scripts/styleguide.py"]
    environment = {**os.environ, "DATA_DIR": str(tmp_path)}

    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    written = {path.stem: path.read_text() for path in (tmp_path / "styleguide").glob("*.html")}
    assert written.keys() == {"index", "login", "404", "500", "editor", "list", "history", "compare"}
    assert "Support triage" in written["list"]
    assert not list(tmp_path.glob("*.sqlite3"))
