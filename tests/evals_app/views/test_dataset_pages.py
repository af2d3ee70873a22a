"""Pages of datasets: items edited in place, settings, versions, history, archive, deletion and purge."""

import json
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.utils import timezone

from agentcms.errors import Conflict
from evals_app.datasets.changes import add_items, change_item, delete_items
from evals_app.datasets.deletion import delete_with_experiments
from evals_app.models import Dataset, ItemVersion, ReleaseGate
from evals_app.views import dataset_settings, items
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, MembershipFactory, member
from tests.form_submission import form_data

pytestmark = pytest.mark.django_db

ONE = "/datasets/support"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def editor(client):
    user = member("editor", "support")
    client.force_login(user)
    return user


@pytest.fixture
def publisher(client):
    user = member("publisher", "support")
    client.force_login(user)
    return user


@pytest.fixture
def support():
    return make_dataset(owner_id="support")


def text(answer, status=200):
    assert answer.status_code == status, answer.content.decode()[:500]
    return answer.content.decode()


def item():
    return ItemVersion.objects.filter(to_version=None).select_related("item").latest("created_at")


@pytest.mark.parametrize("name", ["", " ", "n" * 201, "a\0b"])
def test_an_invalid_name_of_a_dataset_is_an_error_at_its_field(client, editor, name):
    MembershipFactory(user=editor, owner_id="lab", role="editor")

    page = text(client.post("/datasets", {"name": name, "owner_id": "support"}), 422)

    assert not Dataset.objects.exists()
    assert '<details class="menu" id="new-dataset" open>' in page
    assert '<div class="field-error" id="new_name_error" data-error-of="new_name">' in page
    assert '<option value="support" selected>' in page  # what was chosen stays
    client.post("/datasets", {"name": "Mine", "owner_id": "elsewhere"})
    assert not Dataset.objects.exists()


def test_a_dataset_is_created_and_its_items_edited_in_place(client, editor):
    path = client.post("/datasets", {"name": "Support questions", "owner_id": "support"}).url
    added = client.post(f"{path}/items/add", {"input": "When do you open?", "ground_truth": '{"hour": 9}'})
    first = item()
    edit = f"{path}/items/{first.item_id}/edit"
    form = text(client.get(edit, headers=HTMX))
    saved = client.post(edit, {"base": "1", "input": "When?\r\nNow?", "ground_truth": "At nine."}, headers=HTMX)
    cancelled = text(client.get(f"{path}/items/{first.item_id}/row", headers=HTMX))

    assert added.url == f"{path}#new-input"  # for the next item
    assert 'id="new-input"' in text(client.get(path))
    assert first.ground_truth == {"hour": 9}
    assert 'name="ground_truth" rows="4"' in form
    assert "At nine." in text(saved)
    assert 'hx-swap-oob="true">version 2</a>' in text(saved)
    assert "hx-swap-oob" not in cancelled
    assert json.loads(saved.headers["HX-Trigger"])["item-saved"]["message"] == "Saved as version 2."
    assert cancelled.lstrip().startswith(f'<tr id="item-{first.item_id}">')
    assert (item().input, item().ground_truth) == ("When?\nNow?", "At nine.")
    assert "When do you open?" in text(client.get(f"{path}?version=1"))
    assert "earlier version" in text(client.get(f"{path}?version=1"))
    assert "earlier version" not in text(client.get(f"{path}?version=99"))  # there is none yet


def test_only_editors_are_told_to_add_items_to_an_empty_dataset(client, editor):
    Dataset.objects.create(pk="empty", name="Empty", owner_id="support")

    for_editors = text(client.get("/datasets/empty"))
    client.force_login(member("viewer", "support"))
    for_viewers = text(client.get("/datasets/empty"))

    assert "or add an item below" in for_editors
    assert "or add an item below" not in for_viewers
    assert "Editors of the team add questions" in for_viewers


@pytest.mark.parametrize("search", ["überblick", "ÜBERBLICK", "blick"])
def test_a_dataset_is_found_by_its_name_in_any_case(client, editor, search):
    make_dataset(pk="overview", owner_id="support")
    Dataset.objects.update(name="Überblick")

    assert 'href="/datasets/overview"' in text(client.get("/datasets", {"q": search}))


def test_all_fields_are_edited_without_scripts(client, editor, support):
    add_items(support, [{"input": "One", "metadata": {"topic": "a"}}])
    path = f"{ONE}/items/{item().item_id}/edit"
    mocks = '[{"toolName": "clock", "args": {}, "output": 9}]'

    page = text(client.get(path))
    fields = {"tool_mocks": mocks, "unmocked_tool_policy": "deny", "scorer_keys": "none", "metadata": ""}
    answer = client.post(path, {"base": "1", "input": "One", "ground_truth": "", **fields})

    assert "&quot;topic&quot;: &quot;a&quot;" in page
    assert answer.status_code == 302
    assert (item().tool_mocks, item().unmocked_tool_policy) == (json.loads(mocks), "deny")
    assert (item().scorer_keys, item().metadata, item().input) == ([], None, "One")
    assert "none" in text(client.get(path))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"input": " "}, "The input is blank."),
        ({"input": "x", "tool_mocks": "[{}"}, "line 1, column"),
        ({"input": "x", "tool_mocks": '[{"toolName": "a"}]'}, "toolMocks[0].args: This is required."),
        ({"input": "x", "metadata": "[]"}, "object"),
        ({"input": "x", "ground_truth": "text"}, "is not of type"),
    ],
)
def test_errors_stand_at_the_field_and_keep_what_was_typed(client, editor, support, fields, message):
    Dataset.objects.update(ground_truth_schema={"type": "object"})

    page = text(client.post(f"{ONE}/items/add", {**fields, "request_context": '{"typed": 1}'}), 422)

    assert message in page
    assert "{&quot;typed&quot;: 1}" in page
    assert not ItemVersion.objects.exists()


def test_settings_that_somebody_changed_meanwhile_are_replaced_only_on_purpose(client, editor, support):
    path = f"{ONE}/settings"
    mine = {"name": "Mine", "seen": seen(text(client.get(path)))}
    client.post(path, {"name": "Theirs", "description": "Longer.", "seen": mine["seen"]})

    refused = text(client.post(path, mine), 422)

    support.refresh_from_db()
    assert (support.name, support.description) == ("Theirs", "Longer.")
    assert "somebody else has changed this" in refused
    assert 'value="Mine"' in refused
    client.post(path, {**mine, "seen": seen(refused)})
    support.refresh_from_db()
    assert (support.name, support.description) == ("Mine", "")


def test_settings_that_somebody_changes_while_they_are_saved_are_not_replaced(client, editor, support, monkeypatch):
    mine = {"name": "Mine", "seen": seen(text(client.get(f"{ONE}/settings")))}
    lock = dataset_settings.lock_dataset

    def wait_for_lock(dataset_id):
        Dataset.objects.update(name="Theirs")
        return lock(dataset_id)

    monkeypatch.setattr(dataset_settings, "lock_dataset", wait_for_lock)

    text(client.post(f"{ONE}/settings", mine), 422)

    support.refresh_from_db()
    assert support.name == "Theirs"


def seen(page):
    """Return what the form on a page was rendered with."""
    return page.partition('name="seen" value="')[2].partition('"')[0]


def test_an_edit_of_an_item_that_changed_meanwhile_is_refused(client, editor, support):
    add_items(support, [{"input": "One"}])
    path = f"{ONE}/items/{item().item_id}/edit"
    change_item(support, item().item_id, {"input": "Two"})

    page = text(client.post(path, {"base": "1", "input": "Mine"}, headers=HTMX), 422)

    assert "Somebody changed this item meanwhile." in page
    assert "Mine" in page
    assert 'name="base" value="2"' in page
    assert item().input == "Two"


def test_an_edit_of_an_item_that_changes_while_it_is_saved_is_refused(client, editor, support, monkeypatch):
    add_items(support, [{"input": "One"}])

    class SlowForm(items.ItemForm):
        def full_clean(self):
            super().full_clean()
            change_item(support, self.version.item_id, {"input": "Two"})

    monkeypatch.setattr(items, "ItemForm", SlowForm)
    page = text(client.post(f"{ONE}/items/{item().item_id}/edit", {"base": "1", "input": "Mine"}, headers=HTMX), 422)

    assert "Somebody changed this item meanwhile." in page
    assert item().input == "Two"


def test_an_undone_deletion_keeps_what_was_changed_right_before_it(client, editor, support, monkeypatch):
    add_items(support, [{"input": "Open at nine"}])
    item_id = item().item_id

    def change_first(dataset, item_ids):
        change_item(Dataset.objects.get(), item_id, {"input": "Open at ten"})
        return delete_items(dataset, item_ids)

    monkeypatch.setattr(items, "delete_items", change_first)
    page = text(client.post(f"{ONE}/items/{item_id}/delete", follow=True))
    client.post(re.search(rf"{ONE}/items/{item_id}/restore/\d+", page)[0])

    assert item().input == "Open at ten"


def test_a_deletion_is_undone_and_the_history_shows_words_that_differ(client, editor, support):
    add_items(support, [{"input": "Open at nine"}])
    change_item(support, item().item_id, {"input": "Open at ten"})
    item_id = item().item_id
    deleted = client.post(f"{ONE}/items/{item_id}/delete", follow=True)
    undo = f"{ONE}/items/{item_id}/restore/2"
    history = text(client.get(f"{ONE}/items/{item_id}/history"))
    client.post(undo)

    assert undo in text(deleted)
    assert "<del>nine</del>" in history
    assert "<ins>ten</ins>" in history
    assert "Version 3: deleted" in history
    assert "Purge" not in history
    assert (item().input, item().from_version) == ("Open at ten", 4)
    assert client.post(f"{ONE}/items/{item_id}/restore/0").status_code == 404
    assert client.post(f"{ONE}/items/{item_id}/restore/{10**30}").status_code == 302


def test_versions_list_what_they_changed(client, editor, support, django_assert_max_num_queries):
    add_items(support, [{"input": f"Question {n}"} for n in range(60)])
    first = ItemVersion.objects.order_by("item_id").first()
    change_item(support, first.item_id, {"ground_truth": "New"})
    delete_items(support, [first.item_id])

    versions = text(client.get(f"{ONE}/versions"))
    with django_assert_max_num_queries(12):
        added = text(client.get(f"{ONE}/versions/1"))

    assert "60 added" in versions
    assert "Question 3" in added
    assert "1–50 of 60" in added
    assert "<ins>New</ins>" in text(client.get(f"{ONE}/versions/2"))
    assert "Deleted" in text(client.get(f"{ONE}/versions/3"))
    assert client.get(f"{ONE}/versions/9").status_code == 404


def test_settings_are_changed_and_must_fit_the_items(client, editor, support):
    add_items(support, [{"input": "text"}])
    path = f"{ONE}/settings"
    values = {"name": "Renamed", "description": "Of customers", "scorer_keys": "exact, tone", "target_ids": "clerk"}

    saved = client.post(path, values)
    stricter = text(client.post(path, {**values, "input_schema": '{"type": "object"}'}), 422)
    broken = text(client.post(path, {**values, "input_schema": '{"type": "colour"}', "name": ""}), 422)

    dataset = Dataset.objects.get()
    assert saved.status_code == 302
    assert (dataset.name, dataset.scorer_keys, dataset.target_ids) == ("Renamed", ["exact", "tone"], ["clerk"])
    assert (dataset.description, dataset.input_schema) == ("Of customers", None)
    assert "is not of type" in stricter
    assert "colour" in broken
    assert "This is required" in broken
    assert "exact, tone" in text(client.get(path))
    assert "Scorer with id tone not found." in text(client.post(path, values, follow=True))


def test_settings_of_a_dataset_for_workflows_keep_its_type(client, editor):
    make_dataset(owner_id="support", target_type="workflow", target_ids=["triage-ticket"])

    saved = client.post(f"{ONE}/settings", {"name": "Renamed", "target_ids": "triage-ticket"})

    assert saved.status_code == 302
    assert Dataset.objects.get().target_type == "workflow"


def test_a_dataset_is_archived_unarchived_and_deleted(client, publisher, support):
    client.post(f"{ONE}/archive")
    assert f'href="{ONE}"' not in text(client.get("/datasets"))
    assert ONE in text(client.get("/datasets?archived=yes"))
    client.post(f"{ONE}/unarchive")
    assert Dataset.objects.get().archived_at is None

    gate = ReleaseGate.objects.create(agent=AgentFactory(), dataset=support, scorer="exact", minimum=0.5)
    assert "Delete the gate first." in text(client.get(f"{ONE}/delete"))
    assert client.post(f"{ONE}/delete").status_code == 409
    gate.delete()
    assert "cannot be undone" in text(client.get(f"{ONE}/delete", headers=HTMX))
    assert client.post(f"{ONE}/delete").url == "/datasets"
    assert not Dataset.objects.exists()


def test_a_search_that_only_archived_datasets_match_leads_to_them(client, publisher, support):
    client.post(f"{ONE}/archive")

    page = text(client.get("/datasets?q=supp"))

    assert "1 archived dataset matches the search." in page
    assert 'href="?q=supp&amp;archived=yes"' in page
    assert f'href="{ONE}"' in text(client.get("/datasets?q=supp&archived=yes"))
    assert "No name has this text." in text(client.get("/datasets?q=nothing"))


def test_the_dialog_of_another_dataset_with_the_id_deletes_nothing(client, publisher, support):
    form = form_data(text(client.get(f"{ONE}/delete", headers=HTMX)))
    support.delete()
    make_dataset(owner_id="support")

    refused = text(client.post(f"{ONE}/delete", form, headers=HTMX), 409)

    assert "It was deleted in the meantime, and this one was created with its ID." in refused
    assert Dataset.objects.exists()


def test_a_blank_time_of_creation_names_no_dataset(client, publisher, support):
    form = form_data(text(client.get(f"{ONE}/delete", headers=HTMX)))

    client.post(f"{ONE}/delete", {**form.dict(), "row_stamp": ""}, headers=HTMX)

    assert Dataset.objects.exists()


def test_undo_does_not_unarchive_another_dataset_with_the_id(client, publisher, support):
    (message,) = get_messages(client.post(f"{ONE}/archive").wsgi_request)
    support.delete()
    make_dataset(owner_id="support", archived_at=timezone.now())

    refused = client.post(message.extra_tags)

    assert (refused.status_code, Dataset.objects.get().archived_at is None) == (409, False)


def test_a_dataset_that_got_the_id_since_the_page_was_read_is_not_deleted(publisher, support):
    Dataset.objects.all().delete()
    make_dataset(owner_id="support")

    with pytest.raises(Conflict, match="another one has its ID"):
        delete_with_experiments(support)
    assert Dataset.objects.exists()


def test_a_purge_asks_first_and_is_logged(client, publisher, support):
    add_items(support, [{"input": "My name is Ada"}])
    path = f"{ONE}/items/{item().item_id}"

    question = text(client.get(f"{path}/purge"))
    client.post(f"{path}/purge")

    assert "1 version" in question
    history = text(client.get(f"{path}/history"))
    assert "This item was purged." in history
    assert "Ada" not in history
    assert LogEntry.objects.count() == 1
    assert "Purged" in text(client.get(ONE))


def test_empty_pages_say_what_to_do(client, editor):
    assert "No datasets yet" in text(client.get("/datasets"))
    assert "No matching datasets" in text(client.get("/datasets?q=x"))
    assert "No archived datasets" in text(client.get("/datasets?archived=yes"))
    make_dataset(owner_id="support")
    assert "import a file" in text(client.get(ONE))
    assert "No matching items" in text(client.get(f"{ONE}?q=x"))
    assert "No versions yet" in text(client.get(f"{ONE}/versions"))


CHANGES = ["settings", "archive", "unarchive", "delete", "items/add", "ITEM/edit", "ITEM/delete", "ITEM/purge"]


def test_strangers_and_viewers_change_nothing(client, support):
    add_items(support, [{"input": "One"}])
    base = f"items/{item().item_id}"
    changes = [path.replace("ITEM", base) for path in [*CHANGES, "ITEM/restore/1"]]
    for role, owner, status in (("viewer", "support", 403), ("manager", "elsewhere", 404)):
        client.force_login(member(role, owner))
        for path in changes:
            assert client.post(f"{ONE}/{path}", {"input": "Mine", "name": "Mine"}).status_code == status, path
        for path in ("versions", "versions/1", f"{base}/history"):
            assert client.get(f"{ONE}/{path}").status_code == (200 if role == "viewer" else 404), path
    assert (Dataset.objects.get().version, item().input) == (1, "One")
    client.force_login(member("editor", "support"))
    assert client.post(f"{ONE}/delete").status_code == 403
    assert client.post(f"{ONE}/{base}/purge").status_code == 403


def test_the_page_of_a_dataset_takes_a_constant_number_of_queries(
    client, editor, support, django_assert_num_queries, django_assert_max_num_queries
):
    add_items(support, [{"input": "One"}])
    client.get(ONE)
    with django_assert_max_num_queries(16) as few:
        client.get(ONE)
    add_items(support, [{"input": f"Question {n}"} for n in range(49)])
    with django_assert_num_queries(len(few)):
        client.get(ONE)


def test_a_viewer_without_datasets_is_told_who_creates_them(client):
    client.force_login(member("viewer", "support"))

    page = text(client.get("/datasets"))

    assert "Editors of your team create them." in page
    assert "New dataset" not in page


@pytest.mark.parametrize("path", ["/datasets?q=%00sup", f"{ONE}?q=%00on"])
def test_a_nul_in_a_search_is_ignored(client, editor, support, path):
    add_items(support, [{"input": "One"}])

    assert "Support" in text(client.get(path))


def test_only_the_input_of_an_item_is_not_optional(client, editor):
    make_dataset(owner_id="support")

    page = client.get("/datasets/support/items/add").content.decode()

    labels = re.findall(r"<label [^>]*>([^<]*)(<span class=\"optional\">)?", page)
    assert {"Input", "Calls without a mock"} == {label.strip() for label, optional in labels if not optional} - {""}


def test_a_dataset_that_is_used_names_its_gates(client, publisher, support):
    gate = {"dataset": support, "scorer": "exact", "minimum": 0.5, "owner_id": "support"}
    for agent in ({"id": "clerk", "name": "Clerk", "owner_id": "support"}, {"id": "spy", "owner_id": "secret"}):
        ReleaseGate.objects.create(agent=AgentFactory(**agent), **gate)
    ReleaseGate.objects.create(**gate)

    page = text(client.get(f"{ONE}/delete", headers=HTMX))

    assert '<a href="/agents/clerk/quality" dir="auto">Clerk</a>' in page
    assert "all agents of" in page
    assert "spy" not in page
