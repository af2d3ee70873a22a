"""The command `seed_demo_knowledge`: the documentation as a knowledge base, and an agent that cites it."""

import shutil

import pytest
from django.core.management import call_command

from agents_app.models import Agent
from knowledge_app.models import Document, KnowledgeBase
from tests.factories import AgentFactory, member
from tests.knowledge_app.conftest import run_jobs
from tests.runs import chunks, start_run, wait_for_end

pytestmark = pytest.mark.django_db


NAMES = ["evaluations.md", "knowledge.md", "tools.md"]


@pytest.fixture
def few_documents(settings, tmp_path):
    """Leave three documents of the documentation, so that little is embedded."""
    (tmp_path / "docs").mkdir()
    for name in NAMES:
        shutil.copy(settings.BASE_DIR / "docs" / name, tmp_path / "docs")
    settings.BASE_DIR = tmp_path


def test_the_agent_of_the_demo_answers_from_the_documentation_and_cites_it(idle_engine, few_documents):
    AgentFactory(id="concierge")

    call_command("seed_demo_knowledge")
    call_command("seed_demo_knowledge")  # changes nothing
    run_jobs()
    question = "Which setting names the programs of MCP servers?"
    run = wait_for_end(start_run(Agent.objects.get(pk="docs-guide"), member("editor"), question), 60)

    base = KnowledgeBase.objects.get()
    assert [document.name for document in base.documents.order_by("name")] == NAMES
    assert {*base.documents.values_list("status", "error")} == {(Document.Status.READY, "")}
    (result,) = chunks(run, "tool-result")
    best, *others = result["payload"]["result"]["results"]
    assert best["document"] == "tools.md"
    assert len(others) == 2
    assert f"({best['document']}, {best['place']})" in run.output


def test_without_the_demo_agents_there_is_no_knowledge_base(db):
    call_command("seed_demo_knowledge")

    assert not KnowledgeBase.objects.exists()
    assert not Agent.objects.exists()
