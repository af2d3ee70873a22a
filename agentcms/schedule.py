"""The schedule of recurring tasks, which beat starts."""

from __future__ import annotations

from typing import Any

from celery.schedules import crontab

# A broker that stops may lose the message of a night, so each is sent three times. The tasks start a job once in a
# period, and no period begins in these minutes.
MINUTES_OF_REPEATS = (0, 5, 10)


def nightly(hour: int, minute: int) -> crontab:
    """Return the schedule of a task that starts a job at this time of each night."""
    return crontab(hour=hour % 24, minute=[minute + repeat for repeat in MINUTES_OF_REPEATS])


def beat_schedule(nightly_hour: int, job_lease: int) -> dict[str, dict[str, Any]]:
    """Return Celery's schedule.

    Args:
        nightly_hour: The hour (UTC) at which the nightly tasks start.
        job_lease: Seconds without a heartbeat after which the worker of a job counts as dead.
    """
    retention, check, cleanup = nightly(nightly_hour, 0), nightly(nightly_hour, 30), nightly(nightly_hour + 1, 0)
    return {
        # Well within a lease, so that a job whose worker died waits little longer than its lease.
        "send-due-jobs": {"task": "jobs_app.tasks.send_due_jobs", "schedule": min(30.0, job_lease / 4)},
        "prune-versions": {"task": "versions_app.tasks.prune_versions", "schedule": retention},
        "check-history": {"task": "versions_app.tasks.check_history", "schedule": check},
        "list-mcp-tools": {"task": "tools_app.tasks.list_mcp_tools", "schedule": cleanup},
        "index-messages": {"task": "memory_app.tasks.index_missing_messages", "schedule": check},
        "clean-up": {"task": "jobs_app.tasks.clean_up", "schedule": cleanup},
        "mail-approvers": {"task": "runs_app.tasks.mail_approvers", "schedule": 60.0},
        "look-after-background-tasks": {
            "task": "runs_app.tasks.look_after_background_tasks",
            "schedule": 5.0,
        },
        "reap-runs": {"task": "runs_app.tasks.reap_runs", "schedule": 5.0},  # with the lease: within 20 seconds
    }
