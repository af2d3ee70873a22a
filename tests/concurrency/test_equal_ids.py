"""Records that several clients create with one ID at the same moment: one is created, the others are refused."""

from functools import partial

import pytest

from knowledge_app.models import KnowledgeBase
from tests.api_client import Caller
from tests.concurrently import run_concurrently
from tests.factories import UserFactory, api_key
from tools_app.models import AcpAgent, McpServer

pytestmark = pytest.mark.django_db(transaction=True)

SERVER = {"name": "Office", "servers": {"office": {"type": "http", "url": "https://mcp.example.org/mcp"}}}
AGENT = {"id": "coder", "title": "Coder", "commandKey": "coder"}
CASES = [
    ("/api/stored/mcp-clients", SERVER, McpServer),
    ("/api/stored/acp-agents", AGENT, AcpAgent),
    ("/api/knowledge", {"id": "handbook", "name": "Handbook"}, KnowledgeBase),
]


@pytest.mark.parametrize(("path", "body", "model"), CASES)
def test_one_of_equal_ids_is_created_and_the_others_are_a_conflict(settings, path, body, model):
    settings.ACP_COMMANDS = {"coder": {"argv": ["/usr/bin/true"], "sandbox": "none"}}
    key = api_key(UserFactory(is_superuser=True, is_staff=True))

    answers = run_concurrently([partial(Caller(key).post, path, body) for _ in range(8)])

    assert sorted(getattr(answer, "status_code", answer) for answer in answers) == [201, *[409] * 7]
    assert model.objects.count() == 1
