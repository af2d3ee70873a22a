"""Runs of agents: where they are executed, and their limits."""

from agentcms import environment
from agentcms.settings.limits import MAX_DAYS

# A durable run continues in another process when its own stops. Agents and calls may decide otherwise.
RUN_DURABLE = environment.read_bool("RUN_DURABLE", default=True)
# Where durable runs are executed: in the processes of the web server (process), or in workers, which the broker
# (celery), DBOS or Temporal wakes, or in web processes that Inngest calls. Or the path of a runner of your own.
RUN_ENGINE = environment.read_choice_or_path("RUN_ENGINE", "celery", "process", "dbos", "temporal", "inngest")
DBOS_DATABASE_URL = environment.read_url("DBOS_DATABASE_URL", "postgresql", "sqlite")
INNGEST_EVENT_KEY = environment.read_text("INNGEST_EVENT_KEY")
INNGEST_SIGNING_KEY = environment.read_text("INNGEST_SIGNING_KEY")
INNGEST_BASE_URL = environment.read_url("INNGEST_BASE_URL", "http", "https")
TEMPORAL_ADDRESS = environment.read_text("TEMPORAL_ADDRESS", "localhost:7233")
TEMPORAL_NAMESPACE = environment.read_text("TEMPORAL_NAMESPACE", "default")
RUNS_PER_WORKER = environment.read_int("RUNS_PER_WORKER", 64, minimum=1)
RUNS_SUSPENDED_PER_USER = environment.read_int("RUNS_SUSPENDED_PER_USER", 1000, minimum=1)
RUN_STEP_DAYS = environment.read_int("RUN_STEP_DAYS", 1, minimum=1, maximum=MAX_DAYS)
RUN_TIMEOUT = environment.read_int("RUN_TIMEOUT", 300, minimum=1)
RUN_MAX_STEPS = environment.read_int("RUN_MAX_STEPS", 20, minimum=1)
RUN_MAX_TOKENS = environment.read_int("RUN_MAX_TOKENS", 200_000, minimum=1)
RUN_MAX_INPUT = environment.read_int("RUN_MAX_INPUT_KB", 512, minimum=1) * 1024
RUN_TOOL_TIMEOUT = environment.read_int("RUN_TOOL_TIMEOUT", 60, minimum=1)
RUNS_PER_USER = environment.read_int("RUNS_PER_USER", 20, minimum=1)
RUNS_PER_AGENT = environment.read_int("RUNS_PER_AGENT", 50, minimum=1)
# Open streams of a web process. Each uses one thread, in addition to WEB_THREADS.
RUN_STREAMS = environment.read_int("RUN_STREAMS", 48, minimum=1)
RUN_STREAMS_PER_USER = environment.read_int("RUN_STREAMS_PER_USER", 20, minimum=1)
# Seconds after which the connection of a client that reads nothing of a stream is closed.
STREAM_STALL_TIMEOUT = environment.read_int("STREAM_STALL_TIMEOUT", 60, minimum=1, maximum=3600)
RUN_DAYS = environment.read_int("RUN_DAYS", 30, minimum=1, maximum=MAX_DAYS)

# --- Experiments

SCORER_TIMEOUT = environment.read_int("SCORER_TIMEOUT", 100, minimum=1)
EXPERIMENT_RUNS = environment.read_int("EXPERIMENT_RUNS", 20, minimum=1)
EXPERIMENTS_PER_USER = environment.read_int("EXPERIMENTS_PER_USER", 50, minimum=1)  # that have not ended
# Experiments that a worker runs at once, each in a thread. It has four, which other jobs need too.
EXPERIMENTS_PER_WORKER = environment.read_int("EXPERIMENTS_PER_WORKER", 2, minimum=1)
