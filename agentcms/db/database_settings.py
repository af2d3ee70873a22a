"""Values for the setting `DATABASES`."""

from pathlib import Path
from typing import Any

import dj_database_url

# Seconds for which a request waits for a connection, and for which the pool repeats an attempt to connect. Its pauses
# double, so that after a long outage requests would wait in vain. After the last attempt the next request starts over.
POOL_TIMEOUTS = {"timeout": 10, "reconnect_timeout": 10}


def database_config(
    url: str,
    data_dir: Path,
    *,
    pool_size: int,
    use_prepared_statements: bool,
    lock_timeout: int,
    idle_timeout: int = 0,
) -> dict[str, Any]:
    """Return PostgreSQL with a connection pool if the URL names it, else SQLite, by default in the data folder."""
    if not url:
        return sqlite_config(str(data_dir / "agentcms.sqlite3"), lock_timeout)
    config: dict[str, Any] = dict(dj_database_url.parse(url))
    if config["ENGINE"].endswith("sqlite3"):
        return sqlite_config(config["NAME"], lock_timeout)
    config["ENGINE"] = "agentcms.db.backends.postgresql"
    config["DISABLE_SERVER_SIDE_CURSORS"] = not use_prepared_statements  # a pooler in transaction mode loses them
    options = config.setdefault("OPTIONS", {})
    options |= {
        # Prepared statements are planned once for each connection. Some poolers do not support them.
        "server_side_binding": use_prepared_statements,
        "prepare_threshold": 3 if use_prepared_statements else None,
        "pool": {"min_size": 1, "max_size": pool_size, **POOL_TIMEOUTS},
        "options": f"{timeout_options(lock_timeout, idle_timeout)} {options.get('options', '')}".strip(),
    }
    return config


def timeout_options(lock_timeout: int, idle_timeout: int) -> str:
    """Return the options of libpq for timeouts in seconds. Those of the URL come after them and replace them."""
    return f"-c lock_timeout={lock_timeout}s -c idle_in_transaction_session_timeout={idle_timeout}s"


def limit_statements(config: dict[str, Any], seconds: int) -> None:
    """Let PostgreSQL end statements of this process after this time. Call it before the first connection.

    Only web processes do: migrations, imports and the clean-up may take longer.
    """
    if "postgresql" in config["ENGINE"]:
        config["OPTIONS"]["options"] += f" -c statement_timeout={seconds}s"


def sqlite_config(name: str, lock_timeout: int) -> dict[str, Any]:
    """Return SQLite with the database file of this name."""
    return {
        "ENGINE": "agentcms.db.backends.sqlite3",
        "NAME": name,
        # Opening the file again for each request would execute the statements of `init_command` each time.
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": lock_timeout,
            # A transaction waits for the write lock at BEGIN. A deferred one would fail at its first write.
            "transaction_mode": "IMMEDIATE",
            # FULL: a committed edit survives a power failure.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
        },
    }
