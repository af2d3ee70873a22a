"""The admin of knowledge bases."""

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME as SELECTED
from django.db import connection
from django.test.utils import CaptureQueriesContext

from knowledge_app.documents.adding import add_text
from knowledge_app.models import Document, KnowledgeBase
from tests.factories import AgentFactory, member
from tests.knowledge_app.conftest import make_base, run_jobs
from tests.page_client import browser

pytestmark = pytest.mark.django_db

LIST = "/admin/knowledge_app/knowledgebase/"
LONG_COLUMNS = ('"knowledge_app_document"."content"', '"knowledge_app_chunk"."data"')


@pytest.fixture
def filled(base):
    for number in range(3):
        add_text(base, f"Document {number}", "Routers have ports. " * 200)
    run_jobs()
    return base


def read(client, path, **posted):
    """Return a page of the admin, whose queries read no texts and no vectors."""
    with CaptureQueriesContext(connection) as queries:
        page = client.post(path, posted) if posted else client.get(path)
    assert not [query for query in queries if any(column in query["sql"] for column in LONG_COLUMNS)]
    return page.content.decode()


def test_the_question_before_a_deletion_counts_what_goes_without_loading_it(filled, admin_client):
    selected = {"action": "delete_selected", SELECTED: [filled.pk]}
    AgentFactory(id="clerk", owner_id=filled.owner_id, knowledge={filled.key: {}})

    for page in (read(admin_client, f"{LIST}{filled.pk}/delete/"), read(admin_client, LIST, **selected)):
        assert "Documents: 3" in page
        assert "These agents search it and will run without it: &#x27;clerk&#x27;." in page
        assert "Handbook" in page
        assert "Document 0" not in page

    read(admin_client, f"{LIST}{filled.pk}/delete/", post="yes")
    assert not KnowledgeBase.objects.exists()
    assert not Document.objects.exists()


def test_the_list_counts_the_documents_of_all_bases_at_once(filled, admin_client):
    Document.objects.filter(name="Document 0").update(status=Document.Status.FAILED)
    read(admin_client, LIST)
    with CaptureQueriesContext(connection) as of_one:
        page = read(admin_client, LIST)
    for number in range(3):
        make_base(f"other-{number}")
    with CaptureQueriesContext(connection) as of_four:
        read(admin_client, LIST)

    assert '<td class="field-document_count">3</td><td class="field-failed_count">1</td>' in page
    assert len(of_four) == len(of_one)


def test_staff_delete_no_base_of_a_team_in_which_they_only_read(filled):
    make_base("own", "sales")
    user = member("viewer", "support", is_staff=True)
    selected = {"action": "delete_selected", SELECTED: [filled.pk], "post": "yes"}

    assert browser(user).get(f"{LIST}{filled.pk}/delete/").status_code == 403
    browser(user).post(LIST, selected)

    assert KnowledgeBase.objects.count() == 2


def test_a_deletion_returns_to_the_list(base, admin_client):
    answer = admin_client.post(f"{LIST}{base.pk}/delete/", {"post": "yes"})

    assert (answer.status_code, answer.headers["Location"]) == (302, LIST)
