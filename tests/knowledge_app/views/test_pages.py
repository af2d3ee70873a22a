"""The pages of knowledge bases, without scripts."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from access_app.role import Role
from knowledge_app.documents.adding import add_text
from knowledge_app.forms import BaseForm
from knowledge_app.models import Document, KnowledgeBase, KnowledgeIndex
from knowledge_app.models.knowledge_base import KnowledgeBaseQuerySet
from knowledge_app.views import bases
from knowledge_app.views.bases import create_base
from runs_app.providers import cached_providers
from tests.factories import AgentFactory, member
from tests.form_submission import form_data
from tests.knowledge_app.conftest import make_base, run_jobs

pytestmark = pytest.mark.django_db

PAGE = "/knowledge/handbook"
NAMES = ["Hand_Book!", "Handbook", "知識"]


def browser(role=Role.EDITOR, owner="support"):
    client = Client()
    client.force_login(member(role, owner))
    return client


@pytest.fixture
def filled(base):
    add_text(base, "Router", "# Ports\n\nThe router has the port eighty.", metadata={"product": "router"})
    add_text(base, "Switch", "# Ports\n\nThe switch has nine ports.", metadata={"product": "switch"})
    run_jobs()
    return base


def test_the_empty_list_says_what_a_knowledge_base_is_and_who_creates_one():
    page = browser().get("/knowledge").content.decode()

    assert "A knowledge base is a collection of documents" in page
    assert "Publishers of your team create them." in page


def test_the_list_of_documents_cuts_long_metadata(base):
    add_text(base, "Router", "Text.", metadata={"k" * 3000: 1, "product": "v" * 500})

    page = browser().get(PAGE).text

    assert "k" * 39 + "…" in page
    assert "k" * 41 not in page
    assert "v" * 79 + "…" in page
    assert "v" * 81 not in page


def test_a_key_of_the_metadata_may_have_any_name(base):
    add_text(base, "Router", "Text.", metadata={"items": 5, "keys": "a"})

    pages = [browser().get(path).text for path in (PAGE, f"{PAGE}/documents/{Document.objects.get().pk}")]

    # PostgreSQL stores the keys in another order.
    assert {"items: 5", "keys: a"} <= {*re.split(r", |[<>]", pages[0])}
    assert ">items</dt><dd" in pages[1]


def test_the_key_of_a_new_base_is_made_from_its_name(base):
    publisher = browser(Role.PUBLISHER)
    fields = {"owner_id": "support", "embedder": "local/words", "chunk_size": 500, "chunk_overlap": 50}

    pages = [publisher.post("/knowledge/+new", {**fields, "name": name}).headers["Location"] for name in NAMES]

    assert pages == ["/knowledge/hand-book", "/knowledge/handbook-2", "/knowledge/knowledge"]


def test_a_publisher_creates_changes_and_deletes_a_base(db):
    publisher = browser(Role.PUBLISHER)
    fields = {"key": "handbook", "name": "Handbook", "owner_id": "support", "embedder": "local/words"}
    fields |= {"chunk_size": 500, "chunk_overlap": 50, "filterable": "product, year", "description": "Products."}
    assert publisher.post("/knowledge/+new", {**fields, "chunk_overlap": 400}).status_code == 422
    assert publisher.post("/knowledge/+new", fields).headers["Location"] == PAGE
    base = KnowledgeBase.objects.get()
    assert (base.filterable, base.index.chunk_size) == (["product", "year"], 500)

    publisher.post(f"{PAGE}/settings", {**fields, "name": "Manual", "chunk_size": 600})
    run_jobs()
    base.refresh_from_db()
    assert (base.name, base.index.chunk_size) == ("Manual", 600)
    AgentFactory(id="clerk", name="Clerk", owner_id="support", knowledge={"handbook": {}})
    question = publisher.get(f"{PAGE}/delete").content.decode()
    assert "run without it: <bdi>&#x27;clerk&#x27;</bdi>." in question
    assert publisher.post(f"{PAGE}/delete").headers["Location"] == "/knowledge"
    assert not KnowledgeBase.objects.exists()


def test_publishers_of_a_team_create_no_shared_bases(db):
    fields = {"name": "Handbook", "owner_id": "", "embedder": "local/words", "chunk_size": 500, "chunk_overlap": 50}

    refused = browser(Role.PUBLISHER).post("/knowledge/+new", fields)

    assert "You cannot create knowledge bases for this team." in refused.text
    assert (refused.status_code, KnowledgeBase.objects.count()) == (422, 0)


def test_the_dialog_of_another_base_with_the_id_deletes_nothing(base):
    publisher = browser(Role.PUBLISHER)
    form = form_data(publisher.get(f"{PAGE}/delete").content.decode())
    base.delete()
    make_base()

    refused = publisher.post(f"{PAGE}/delete", form)

    assert refused.status_code == 409
    assert "It was deleted in the meantime, and this one was created with its ID." in refused.text
    assert KnowledgeBase.objects.exists()


def test_settings_that_somebody_changed_meanwhile_are_replaced_only_on_purpose(base):
    publisher, path = browser(Role.PUBLISHER), f"{PAGE}/settings"
    fields = {"name": "Manual", "embedder": "local/words", "chunk_size": 1000, "chunk_overlap": 100}
    opened = seen(publisher.get(path).content.decode())
    publisher.post(path, {**fields, "chunk_size": 600, "seen": opened})

    refused = publisher.post(path, {**fields, "description": "Mine.", "seen": opened})

    base.refresh_from_db()
    assert (refused.status_code, base.chunk_size, base.description) == (422, 600, "")
    assert "somebody else has changed this" in refused.content.decode()
    publisher.post(path, {**fields, "description": "Mine.", "seen": seen(refused.content.decode())})
    base.refresh_from_db()
    assert (base.chunk_size, base.description) == (1000, "Mine.")


def test_settings_that_somebody_changes_while_they_are_saved_are_not_replaced(base, monkeypatch):
    publisher, path = browser(Role.PUBLISHER), f"{PAGE}/settings"
    fields = {"name": "Mine", "embedder": "local/words", "chunk_size": 1000, "chunk_overlap": 100}
    opened = seen(publisher.get(path).content.decode())
    get_locked = KnowledgeBaseQuerySet.get_locked

    def wait_for_lock(bases, base_id):
        KnowledgeBase.objects.update(name="Theirs")
        return get_locked(bases, base_id)

    monkeypatch.setattr(KnowledgeBaseQuerySet, "get_locked", wait_for_lock)

    refused = publisher.post(path, {**fields, "seen": opened})

    base.refresh_from_db()
    assert (refused.status_code, base.name) == (422, "Theirs")


def seen(page):
    """Return what the form on a page was rendered with."""
    return page.partition('name="seen" value="')[2].partition('"')[0]


def test_changed_settings_keep_the_index_that_a_job_made_meanwhile(base, monkeypatch):
    other = KnowledgeIndex.objects.create(base=base, name="other", **base.settings_of_index)

    def swap_meanwhile(form):
        KnowledgeBase.objects.update(index=other)
        return ["product"]

    monkeypatch.setattr(BaseForm, "clean_filterable", swap_meanwhile)
    fields = {"name": "Manual", "embedder": "local/words", "chunk_size": 1000, "chunk_overlap": 100}
    answer = browser(Role.PUBLISHER).post(f"{PAGE}/settings", fields)

    base.refresh_from_db()
    assert answer.status_code == 302
    assert (base.name, base.filterable, base.index) == ("Manual", ["product"], other)


def test_files_with_metadata_that_is_too_long_are_refused(base):
    files = {"files": [SimpleUploadedFile("a.md", b"The port is eighty.")]}

    page = browser().post(f"{PAGE}/upload", {**files, "meta-product": "r" * 501}, follow=True)

    assert "product: Ensure this value has at most 500 characters" in page.content.decode()
    assert not Document.objects.exists()


def test_a_key_that_is_taken_while_the_form_is_sent_is_an_error_of_the_form(monkeypatch):
    def create_after_another(form):
        make_base("manual")
        return create_base(form)

    monkeypatch.setattr(bases, "create_base", create_after_another)
    fields = {"owner_id": "support", "embedder": "local/words", "chunk_size": 500, "chunk_overlap": 50}
    answer = browser(Role.PUBLISHER).post("/knowledge/+new", {**fields, "name": "Manual", "key": "manual"})

    assert answer.status_code == 409
    assert "Knowledge base with id manual already exists" in answer.content.decode()


def test_several_files_are_uploaded_and_each_error_names_its_file(base):
    files = [
        SimpleUploadedFile("a.md", b"# A\n\nThe port is eighty."),
        SimpleUploadedFile("b.exe", b"\0\1", "application/octet-stream"),
        SimpleUploadedFile("c.html", b"<h1>C</h1><script>alert(1)</script><p>Hello"),
    ]
    page = browser().post(
        f"{PAGE}/upload", {"files": files, "meta-product": "router", "meta-year": "2024"}, follow=True
    )
    run_jobs()

    text = page.content.decode()
    assert "b.exe" in text
    assert "cannot be read" in text
    assert "2 documents added" in text
    assert {*Document.objects.values_list("name", "status")} == {("a.md", "ready"), ("c.html", "ready")}
    assert Document.objects.get(name="a.md").metadata == {"product": "router", "year": 2024}
    assert Document.objects.get(name="c.html").text == "# C\n\nHello"


def test_a_replaced_document_keeps_its_metadata_as_the_page_says(base):
    def upload(text, **metadata):
        browser().post(f"{PAGE}/upload", {"files": SimpleUploadedFile("a.md", text), **metadata})
        return Document.objects.get(name="a.md").metadata

    page = browser().get(PAGE).text

    assert "If all are blank, a document that is replaced keeps its metadata." in page
    assert upload(b"One", **{"meta-product": "router", "meta-year": "2024"}) == {"product": "router", "year": 2024}
    assert upload(b"Two", **{"meta-product": "", "meta-year": ""}) == {"product": "router", "year": 2024}
    assert upload(b"Three", **{"meta-product": "modem", "meta-year": ""}) == {"product": "modem"}


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("old.txt", "Öfen".encode("latin-1"), "The document is not text in UTF-8."),
        ("noise.html", b"\xff\x00\x80" * 9, "The document is not text in UTF-8."),
        ("blank.md", b" \n\n", "The document has no text."),
    ],
)
def test_a_file_without_readable_text_is_refused_at_once(base, name, content, error):
    files = {"files": SimpleUploadedFile(name, content)}

    upload = browser().post(f"{PAGE}/upload", files, headers={"Accept": "application/json"})

    assert upload.status_code == 422
    assert error in upload.json()["results"][0]["error"]
    assert not Document.objects.exists()


def test_the_script_reads_the_error_of_a_file(base):
    upload = browser().post(
        f"{PAGE}/upload",
        {"files": SimpleUploadedFile("b.exe", b"\0", "application/octet-stream")},
        headers={"Accept": "application/json"},
    )

    assert upload.status_code == 422
    assert "b.exe" in upload.json()["results"][0]["error"]


def test_texts_and_urls_are_added(base):
    editor = browser()
    assert editor.post(f"{PAGE}/text", {"name": "Notes", "text": "Short."}).status_code == 302
    refused = editor.post(f"{PAGE}/url", {"url": "http://169.254.169.254/latest"})

    assert refused.status_code == 422
    assert "private address" in refused.content.decode()
    assert [*Document.objects.values_list("name", flat=True)] == ["Notes"]


def test_a_question_shows_passages_with_scores_and_places(filled):
    viewer = browser(Role.VIEWER)
    page = viewer.get(f"{PAGE}?q=which+port+has+the+router&top_k=1").content.decode()

    assert "The router has the port eighty." in page
    assert "The switch" not in page.split('id="documents"')[0]
    assert "<meter" in page
    filtered = viewer.get(f"{PAGE}?q=router&key=product&operator=$eq&value=switch").content.decode()
    assert "The router has the port" not in filtered
    assert "Upload" not in page  # viewers add nothing
    none = viewer.get(f"{PAGE}?q=which+port+has+the+router&min_score=0.95").content.decode()
    assert "No passage reached the minimum score of 0.95." in none
    assert "less than or equal to 1" in viewer.get(f"{PAGE}?q=port&min_score=2").content.decode()


def test_the_table_shows_errors_by_document_and_asks_again_while_documents_wait(base):
    add_text(base, "Notes", "Short.")
    editor = browser()
    assert "every 2s" in editor.get(f"{PAGE}/documents").content.decode()
    run_jobs()
    Document.objects.update(status="failed", error="The PDF needs a password.")

    table = editor.get(f"{PAGE}/documents").content.decode()
    assert "every 2s" not in table
    assert "The PDF needs a password." in table


def test_a_document_is_shown_and_deleted(filled):
    document = Document.objects.get(name="Router")
    url = f"{PAGE}/documents/{document.pk}"
    editor = browser()

    assert "The router has the port eighty." in editor.get(url).content.decode()
    assert "cannot be undone" in editor.get(f"{url}/delete").content.decode()
    editor.post(f"{url}/delete")
    assert not Document.objects.filter(name="Router").exists()


PATHS = ["", "/settings", "/delete", "/documents", "/reindex", "/upload", "/text", "/url"]


@pytest.mark.parametrize("path", PATHS)
def test_a_base_of_another_team_does_not_exist(filled, path):
    stranger = browser(Role.MANAGER, "sales")

    answers = {stranger.get(PAGE + path).status_code, stranger.post(PAGE + path).status_code}
    assert answers <= {404, 405}
    assert "Handbook" not in stranger.get("/knowledge").content.decode()
    document = Document.objects.first()
    assert stranger.get(f"{PAGE}/documents/{document.pk}").status_code == 404


@pytest.mark.parametrize(
    ("role", "path"),
    [
        (Role.VIEWER, "/upload"),
        (Role.VIEWER, "/text"),
        (Role.VIEWER, "/url"),
        (Role.VIEWER, "/reindex"),
        (Role.EDITOR, "/settings"),
        (Role.EDITOR, "/delete"),
    ],
)
def test_a_missing_role_is_refused(filled, role, path):
    assert browser(role).post(PAGE + path, {"name": "x"}).status_code == 403
    assert KnowledgeBase.objects.get().name == "Handbook"


def test_the_page_counts_the_agents_that_it_does_not_list(filled, monkeypatch):
    monkeypatch.setattr(bases, "MAX_LISTED_AGENTS", 2)
    names = ["Ann", "Ben", "Cleo", "Dora"]
    for name in names[:2]:
        AgentFactory(name=name, owner_id="support", knowledge={"handbook": {}})
    all_listed = browser().get(PAGE).text
    for name in names[2:]:
        AgentFactory(name=name, owner_id="support", knowledge={"handbook": {}})

    page = browser().get(PAGE).text

    assert " more" not in all_listed[all_listed.index(">Used by<") :].partition("</dd>")[0]
    assert page[page.index(">Used by<") :].partition("</dd>")[0].endswith("Ben</a> and 2 more")


def test_the_list_takes_few_queries(filled, django_assert_max_num_queries):
    make_base("other")
    viewer = browser(Role.VIEWER)
    viewer.get("/knowledge")
    with django_assert_max_num_queries(9):
        page = viewer.get("/knowledge").content.decode()
    assert "Handbook" in page
    assert "Other" in page


@pytest.mark.parametrize("search", ["HAND", "\0hand", "andbo"])
def test_a_base_is_found_by_its_name(base, search):
    make_base("other")

    matching, none = (browser().get("/knowledge", {"q": text}).text for text in (search, "printer"))

    assert 'href="/knowledge/handbook"' in matching
    assert 'href="/knowledge/other"' not in matching
    assert "No matching knowledge bases" in none


def test_documents_are_found_by_name_on_all_pages(base, monkeypatch):
    monkeypatch.setattr(bases, "ROWS_PER_PAGE", 2)
    for name in ("Router setup", "Router reset", "Switch", "router ports"):
        add_text(base, name, "Text.")

    first = browser().get(PAGE, {"name": "ROUTER"})
    second = browser().get(f"{PAGE}/documents", {"name": "ROUTER", "page": 2})
    none = browser().get(PAGE, {"name": "printer"})
    add_text(base, "Überblick", "Text.")
    german = browser().get(PAGE, {"name": "überBLICK"})

    assert [document.name for document in first.context["page"]] == ["Router reset", "Router setup"]
    assert 'href="?name=ROUTER&amp;page=2"' in first.text
    assert "Router" not in second.text
    assert "router ports" in second.text
    assert "No document has this in its name." in none.text
    assert [document.name for document in german.context["page"]] == ["Überblick"]
    assert "No documents yet" not in none.text


def test_the_form_explains_what_an_embedder_does_and_offers_those_of_providers(base, settings):
    settings.MODEL_KEYS = {"openai": "sk-test-0123456789", "google": ""}
    cached_providers.invalidate()
    page = browser(Role.PUBLISHER).get(f"/knowledge/{base.key}/settings").content.decode()

    assert "The model with which searches find passages by their meaning." in page
    assert '<option value="openai/text-embedding-3-small">OpenAI</option>' in page
    assert '<option value="google/' not in page
    cached_providers.invalidate()
    assert "Filterable keys" in page
