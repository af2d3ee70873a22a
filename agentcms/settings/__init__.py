"""Django settings by topic, read from environment variables.

The defaults suit one machine: SQLite and an embedded Valkey in a data folder. README.md lists the variables.
"""

from agentcms.settings.agents import *
from agentcms.settings.applications import *
from agentcms.settings.approvals import *
from agentcms.settings.database import *
from agentcms.settings.files import *
from agentcms.settings.http import *
from agentcms.settings.jobs import *
from agentcms.settings.limits import *
from agentcms.settings.memory import *
from agentcms.settings.observability import *
from agentcms.settings.paths import *
from agentcms.settings.providers import *
from agentcms.settings.runs import *
from agentcms.settings.security import *
from agentcms.settings.tools import *
