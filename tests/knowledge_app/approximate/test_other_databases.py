"""SQLite has no pgvector."""

import pytest
from django.core.management import CommandError, call_command

from agentcms.vectors.pgvector import uses_pgvector

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def test_the_command_says_that_it_needs_postgresql():
    with pytest.raises(CommandError, match="an extension of PostgreSQL"):
        call_command("use_pgvector")

    assert not uses_pgvector()
