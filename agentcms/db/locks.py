"""Locks on names, for counts and checks that no row can be locked for, and on rows to which others refer."""

from django.db import connection
from django.db.models import Model

from agentcms.errors import Conflict


def lock_name(name: str) -> None:
    """Wait until no other transaction holds the lock of this name, and hold it until this transaction ends.

    On SQLite there is nothing to do: its transactions wait for each other from their start.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # A lock has a number. Two names with one number only wait for each other without need.
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def lock_referenced_rows() -> None:
    """Lock the rows to which the rows of this transaction refer. Raise IntegrityError if one was deleted meanwhile.

    Otherwise PostgreSQL looks for them at the commit, whose failure undoes the whole transaction. On SQLite there is
    nothing to do: nobody deletes rows during a transaction.
    """
    if connection.vendor == "postgresql":
        connection.check_constraints()


def reserve_new_key(model: type[Model], key: str) -> None:
    """Lock an ID until the transaction that creates its row ends. Raise Conflict if a row has it.

    Until the row exists, there is none to lock: two requests with one ID would otherwise both create it.
    """
    name = model._meta.verbose_name or ""
    lock_name(f"{name} {key}")
    # After the lock: this statement sees what its previous holder committed (READ COMMITTED).
    if model._default_manager.filter(key=key).exists():
        raise Conflict(f"{name[:1].upper()}{name[1:]} with id {key} already exists")
