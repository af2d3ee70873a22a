"""The versions of MCP servers and ACP agents that are kept."""

import pytest

from tools_app.models import AcpAgent, McpServer

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", [McpServer, AcpAgent])
def test_the_oldest_versions_over_the_limit_are_deleted(model, settings):
    settings.AGENT_VERSION_LIMIT = 5
    row, other = model(key="office", title="Office"), model(key="other", title="Other")
    other.save()

    for number in range(1, 8):
        row.title = f"Office {number}"
        row.save()

    assert [version.version_number for version in row.versions.all()] == [7, 6, 5, 4, 3]
    assert other.versions.count() == 1
