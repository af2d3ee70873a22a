"""Rows of the admin that others change while their page is open."""

import re
import threading
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from access_app.models import ApiKey, Membership
from runs_app.models import ModelProvider, TraceRule
from tests import page_client
from tests.factories import AgentFactory, UserFactory, api_key, member
from tools_app.models import AcpAgent, McpServer
from versions_app.models import RetentionRule

pytestmark = pytest.mark.django_db

CHANGED = "was changed since you opened it. Copy your text, open it again and reapply it."


@pytest.fixture
def browser(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


def create_key() -> Any:
    api_key(UserFactory(), name="laptop")
    return ApiKey.objects.get()


def create_acp_agent(settings: Any) -> Any:
    settings.ACP_COMMANDS = {"coder": {"argv": ["/bin/cat"], "sandbox": "none"}}
    return AcpAgent.objects.create(key="coder", title="Coder", command_key="coder")


ROWS: dict[str, tuple[Any, str, Any]] = {
    "user": (UserFactory, "email", "eve@example.org"),
    "membership": (lambda: member("manager", "support").memberships.get(), "role", "viewer"),
    "key": (create_key, "name", "phone"),
    "retention": (lambda: RetentionRule.objects.create(owner_id="", versions=5), "versions", 9),
    "trace": (lambda: TraceRule.objects.create(owner_id="", allows_content=True), "allows_content", False),
    "provider": (lambda: ModelProvider.objects.create(key="lab", title="Lab"), "title", "Laboratory"),
    "server": (
        lambda: McpServer.objects.create(key="office", title="Office", url="https://mcp.example.org/mcp"),
        "url",
        "https://other.example.org/mcp",
    ),
    "version": (lambda: AgentFactory().versions.get(), "name", "Spring"),
}


def page_address(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def opened_inputs(browser: Any, row: Any) -> dict[str, Any]:
    """Open the page of a row and return what its form would post."""
    page = browser.get(page_address(row))
    form = page.context["adminform"].form
    names = {name: form[name].value() for name in form.fields}
    for formset in (item.formset for item in page.context["inline_admin_formsets"]):
        for part in (formset.management_form, *formset):
            names |= {part.add_prefix(name): part[name].value() for name in part.fields}
    state = re.search(r'name="opened_state" value="(\w+)"', page.content.decode())
    return {
        **{name: value for name, value in names.items() if value is not None and value is not False},
        "opened_state": state[1],
    }


@pytest.mark.parametrize("name", ROWS)
def test_a_form_does_not_undo_what_others_saved_meanwhile(browser, name):
    create, column, value = ROWS[name]
    row = create()
    inputs = opened_inputs(browser, row)
    type(row)._base_manager.filter(pk=row.pk).update(**{column: value})

    answers = [browser.post(page_address(row), inputs) for _ in range(2)]

    assert [CHANGED in answer.content.decode() for answer in answers] == [True, True]
    row.refresh_from_db()
    assert getattr(row, column) == value


@pytest.mark.parametrize("name", ROWS)
def test_a_form_of_an_unchanged_row_is_saved(browser, name):
    row = ROWS[name][0]()

    answer = browser.post(page_address(row), opened_inputs(browser, row))

    assert answer.status_code == 302


def test_a_form_does_not_undo_a_limit_of_an_acp_agent(browser, settings):
    row = create_acp_agent(settings)
    inputs = opened_inputs(browser, row)
    AcpAgent.objects.filter(pk=row.pk).update(limits={"processes": 3})

    answer = browser.post(page_address(row), inputs)

    assert CHANGED in answer.content.decode()
    row.refresh_from_db()
    assert row.limits == {"processes": 3}


def test_a_form_of_a_user_does_not_give_a_role_back_that_was_taken(browser):
    member("manager", "support")
    user = member("manager", "support")
    inputs = opened_inputs(browser, user)
    user.memberships.update(role="viewer")

    answer = browser.post(page_address(user), {**inputs, "first_name": "Eve"})

    assert CHANGED in answer.content.decode()
    assert Membership.objects.get(user=user).role == "viewer"


def test_a_new_password_or_sign_in_stops_no_form_of_a_user(browser):
    user = UserFactory()
    inputs = opened_inputs(browser, user)
    user.set_password("another long password")
    user.save()
    browser_of_user = type(browser)()
    browser_of_user.force_login(user)

    answer = browser.post(page_address(user), {**inputs, "first_name": "Eve"})

    assert answer.status_code == 302
    user.refresh_from_db()
    assert user.first_name == "Eve"
    assert user.check_password("another long password")


@pytest.mark.django_db(transaction=True)
def test_of_two_forms_that_are_saved_at_once_one_is_refused():
    root, user = UserFactory(is_staff=True, is_superuser=True), UserFactory()
    inputs = opened_inputs(page_client.browser(root), user)
    barrier, statuses = threading.Barrier(2), []

    def save(changed):
        client = page_client.browser(root)
        barrier.wait()
        statuses.append(client.post(page_address(user), {**inputs, **changed}).status_code)
        connection.close()

    changes = ({"first_name": "Eve"}, {"last_name": "Moore"})
    threads = [threading.Thread(target=save, args=[changed]) for changed in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    user.refresh_from_db()
    assert sorted(statuses) == [200, 302]
    assert sorted([user.first_name, user.last_name]) in (["", "Eve"], ["", "Moore"])
