"""The settings of the processes that the tests of durable runs start: they use the database of the tests."""

import os

from agentcms.settings import *  # noqa: F403
from agentcms.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.durable"]
DATABASES["default"]["NAME"] = os.environ["DURABLE_DATABASE"]
