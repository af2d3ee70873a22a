"""The start of the processes of the web server."""

import subprocess
import sys

from agentcms.server.processes import PROJECT

# Since Python 3.14, granian starts new processes that load the application themselves, unless it is told otherwise.
SCRIPT = """
import multiprocessing
multiprocessing.set_start_method("spawn")
from agentcms.server import web

class Server:
    def __init__(self, *arguments, **options):
        print(multiprocessing.get_start_method())

    def on_startup(self, hook):
        pass

    def serve(self):
        pass

web.WebServer = Server
print(web.main())
"""


def test_processes_are_forks_that_share_what_is_loaded(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=PROJECT,
        env={"DATA_DIR": str(tmp_path), "PATH": "/usr/bin:/bin", "DEBUG": "yes"},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout.split() == ["fork", "0"], done.stderr
