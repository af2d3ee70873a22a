"""Folders of the application."""

import os
from pathlib import Path

from agentcms import environment

BASE_DIR = Path(__file__).resolve().parent.parent.parent
DATA_DIR = Path(environment.read_text("DATA_DIR", str(BASE_DIR / "var"))).resolve()
# Every process loads the settings before it creates a file: the database, exports and logs are for this user only.
os.umask(0o077)
