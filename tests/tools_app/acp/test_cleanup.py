"""The clean-up of workspaces."""

import os

import pytest

from agentcms.ids import uuid7
from tests.factories import UserFactory
from tests.memory_app.conftest import add_thread
from tools_app.acp.workspaces.cleanup import delete_abandoned_workspaces

pytestmark = pytest.mark.django_db


def nest(folder, count):
    """Create folders in folders, as an agent can that changes into each."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("n", dir_fd=descriptor)
        inner = os.open("n", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)


def test_the_folders_of_deleted_conversations_and_runs_are_deleted(settings, tmp_path):
    settings.WORKSPACES_DIR = tmp_path
    thread = add_thread(UserFactory())
    stays = [f"thread-{thread.pk}", "named-site", "run-nonsense"]
    for name in [*stays, f"thread-{thread.pk + 1}", f"run-{uuid7()}"]:
        (tmp_path / "support" / name / "folder").mkdir(parents=True)

    nest(tmp_path / "support" / f"thread-{thread.pk + 1}", 1500)

    delete_abandoned_workspaces()

    assert sorted(folder.name for folder in (tmp_path / "support").iterdir()) == sorted(stays)
