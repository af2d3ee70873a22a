#!/usr/bin/env python
"""The command line of Django for Agent CMS."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"{error}")
    except DatabaseError as error:
        if not is_schema_missing(error):
            raise
        sys.exit("The database is not migrated. Run `make run` or `manage.py migrate` first.")


def is_schema_missing(error: Exception) -> bool:
    """Return whether a table or a column is missing in SQLite or PostgreSQL."""
    states = ("42P01", "42703")  # undefined_table, undefined_column
    missing = f"{error}".startswith(("no such table", "no such column"))
    return missing or getattr(error.__cause__, "sqlstate", None) in states


if __name__ == "__main__":
    main()
