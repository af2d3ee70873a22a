"""Functions that are called after a commit, and fail alone."""

from functools import partial

import pytest
from django.conf import settings
from django.db import transaction
from django.dispatch import Signal

from agentcms.db.after_commit import call_after_commit

pytestmark = pytest.mark.django_db(transaction=True)

SENT = Signal()


def fail(text, **kwargs):
    raise ValueError(text)


@pytest.mark.parametrize("function", [fail, partial(fail), partial(SENT.send, None)], ids=["plain", "partial", "sent"])
def test_a_failure_is_logged_and_the_next_function_is_called(function, caplog):
    called = []
    SENT.connect(fail)

    with transaction.atomic():
        call_after_commit(function, text="no broker")
        call_after_commit(called.append, 1)
        assert not called

    SENT.disconnect(fail)
    assert called == [1]
    assert "no broker" in caplog.text


def test_a_failure_outside_of_a_transaction_is_logged_with_the_name_of_the_function(caplog):
    call_after_commit(fail, "no broker")

    assert caplog.messages == ["Error calling fail in on_commit() (no broker)."]


def test_nothing_is_called_after_a_rollback():
    called = []

    with transaction.atomic():
        call_after_commit(called.append, 1)
        transaction.set_rollback(True)

    assert not called


def test_the_code_does_not_call_robust_hooks_of_django_itself():
    apps = [path for path in settings.BASE_DIR.iterdir() if path.name == "agentcms" or path.name.endswith("_app")]
    modules = [module for app in apps for module in app.rglob("*.py") if "robust=True" in module.read_text()]

    assert [module.name for module in modules] == ["after_commit.py"]
