"""Memory of agents: threads, signals, recall and observations."""

from agentcms import environment
from agentcms.settings.limits import MAX_DAYS

SIGNALS_UNSEEN = environment.read_int("SIGNALS_UNSEEN", 100, minimum=1)  # of a thread
MEMORY_EMBEDDER = environment.read_text("MEMORY_EMBEDDER", "local/multilingual")
RECALL_MOST = environment.read_int("RECALL_MOST", 20_000, minimum=100, maximum=1_000_000)
# The largest working memory of a resource or a thread.
WORKING_MEMORY_MAX_KB = environment.read_int("WORKING_MEMORY_MAX_KB", 32, minimum=1, maximum=1024)
# Seconds for which a model may make an observation or a reflection.
OBSERVER_TIMEOUT = environment.read_int("OBSERVER_TIMEOUT", 60, minimum=1, maximum=3600)
THREAD_DAYS = environment.read_int("THREAD_DAYS", 365, minimum=1, maximum=MAX_DAYS)
