"""Tools: MCP servers, ACP agents, background tasks and knowledge bases."""

from pathlib import Path

from agentcms import environment
from agentcms.settings.limits import MAX_TASK_SECONDS
from agentcms.settings.paths import DATA_DIR

# A JSON file with the programs that MCP servers may be: {"key": {"argv": [...], "env": ["NAME"], "sandbox": "bwrap"}}.
MCP_COMMANDS = environment.read_json_file("MCP_COMMANDS")
MCP_SERVERS_PER_TEAM = environment.read_int("MCP_SERVERS_PER_TEAM", 50, minimum=1)
# A JSON file with the programs that ACP agents may be, in the same form, with "network": "none" or "proxy".
ACP_COMMANDS = environment.read_json_file("ACP_COMMANDS")
# The sandbox of the programs of ACP_COMMANDS that name none.
ACP_SANDBOX = environment.read_choice("ACP_SANDBOX", "bwrap", "none")
# The folders in which ACP agents work.
WORKSPACES_DIR = Path(environment.read_text("WORKSPACES_DIR", str(DATA_DIR / "workspaces"))).resolve()

# --- Background tasks

# Tool calls in the background: how many run at once, and how many of one agent. More wait. Times are in seconds.
BACKGROUND_TASKS = environment.read_int("BACKGROUND_TASKS", 10, minimum=1)
BACKGROUND_TASKS_PER_AGENT = environment.read_int("BACKGROUND_TASKS_PER_AGENT", 5, minimum=1)
BACKGROUND_TASK_TIMEOUT = environment.read_int("BACKGROUND_TASK_TIMEOUT", 300, minimum=1, maximum=MAX_TASK_SECONDS)
BACKGROUND_TASK_MAX_TIMEOUT = environment.read_int(
    "BACKGROUND_TASK_MAX_TIMEOUT", 3600, minimum=1, maximum=MAX_TASK_SECONDS
)
BACKGROUND_TASK_MAX_RETRIES = environment.read_int("BACKGROUND_TASK_MAX_RETRIES", 5, minimum=0, maximum=100)

# --- Knowledge bases

# The knowledge bases of a team. Of all of them: the number of documents and the size of their content, and the vectors
# that callers send.
KNOWLEDGE_BASES_PER_TEAM = environment.read_int("KNOWLEDGE_BASES_PER_TEAM", 100, minimum=1)
KNOWLEDGE_DOCUMENTS_PER_TEAM = environment.read_int("KNOWLEDGE_DOCUMENTS_PER_TEAM", 10_000, minimum=1)
KNOWLEDGE_BYTES_PER_TEAM = environment.read_int("KNOWLEDGE_MB_PER_TEAM", 2000, minimum=1) * 1024 * 1024
KNOWLEDGE_VECTORS_PER_TEAM = environment.read_int("KNOWLEDGE_VECTORS_PER_TEAM", 200_000, minimum=1)
# The largest document of a knowledge base, and what may be read of a PDF: its pages, and the seconds that this takes.
KNOWLEDGE_MAX_DOCUMENT_BYTES = environment.read_int("KNOWLEDGE_MAX_DOCUMENT_MB", 10, minimum=1) * 1024 * 1024
KNOWLEDGE_MAX_PAGES = environment.read_int("KNOWLEDGE_MAX_PAGES", 2000, minimum=1)
KNOWLEDGE_EXTRACTION_TIMEOUT = environment.read_int("KNOWLEDGE_EXTRACTION_TIMEOUT", 60, minimum=1)
# Jobs that index documents, of those that a worker runs at once. They need much CPU.
KNOWLEDGE_JOBS_PER_WORKER = environment.read_int("KNOWLEDGE_JOBS_PER_WORKER", 1, minimum=1)
