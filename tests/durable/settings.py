"""The settings of the processes that the tests of durable runs start.

They use the database of the tests, if DURABLE_DATABASE names it.
"""

import os

from agentcms.settings import *  # noqa: F403
from agentcms.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.durable"]
DATABASES["default"]["NAME"] = os.environ.get("DURABLE_DATABASE") or DATABASES["default"]["NAME"]
