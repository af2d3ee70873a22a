#!/usr/bin/env python
"""Django's command line for Agent CMS."""

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
        if not lacks_tables(error):
            raise
        sys.exit("The database has no tables yet, or not all. Run `make run`, or `manage.py migrate`, first.")


def lacks_tables(error: Exception) -> bool:
    """Whether a table or a column is missing, as SQLite or PostgreSQL says it."""
    states = ("42P01", "42703")  # undefined_table, undefined_column
    missing = f"{error}".startswith(("no such table", "no such column"))
    return missing or getattr(error.__cause__, "sqlstate", None) in states


if __name__ == "__main__":
    main()
