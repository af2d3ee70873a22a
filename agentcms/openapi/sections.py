"""All sections of the OpenAPI document, in the order of the reference."""

from __future__ import annotations

from agentcms.openapi.agents.agents import AGENT_SECTION
from agentcms.openapi.agents.exchange import EXCHANGE_SECTION
from agentcms.openapi.agents.versions import VERSION_SECTION
from agentcms.openapi.evaluations.dataset_files import DATASET_FILE_SECTION
from agentcms.openapi.evaluations.datasets import DATASET_SECTION
from agentcms.openapi.evaluations.experiments import EXPERIMENT_SECTION
from agentcms.openapi.evaluations.scorers import SCORER_SECTION
from agentcms.openapi.memory.signals import SIGNAL_SECTION
from agentcms.openapi.memory.threads import MEMORY_SECTION
from agentcms.openapi.runs.approvals import APPROVAL_SECTION
from agentcms.openapi.runs.background_tasks import BACKGROUND_TASK_SECTION
from agentcms.openapi.runs.runs import RUN_SECTION
from agentcms.openapi.section import ApiSection
from agentcms.openapi.tools.acp import ACP_SECTION
from agentcms.openapi.tools.knowledge import KNOWLEDGE_SECTION
from agentcms.openapi.tools.mcp import MCP_SECTION

SECTIONS: tuple[ApiSection, ...] = (
    AGENT_SECTION,
    VERSION_SECTION,
    EXCHANGE_SECTION,
    RUN_SECTION,
    APPROVAL_SECTION,
    BACKGROUND_TASK_SECTION,
    MEMORY_SECTION,
    SIGNAL_SECTION,
    MCP_SECTION,
    ACP_SECTION,
    KNOWLEDGE_SECTION,
    DATASET_SECTION,
    DATASET_FILE_SECTION,
    EXPERIMENT_SECTION,
    SCORER_SECTION,
)
