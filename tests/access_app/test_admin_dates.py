"""Lists of the admin whose URL names a date that does not exist."""

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from tests.factories import UserFactory

DATES = [
    "created_at__year=99999",
    "created_at__year=0",
    "created_at__year=2026&created_at__month=13",
    "created_at__year=2026&created_at__month=2&created_at__day=30",
    "created_at__year=x",
]
PAGES = {
    model._meta.label_lower: page
    for model, page in admin.site._registry.items()
    if any(field.name == "created_at" for field in model._meta.fields)
}


@pytest.mark.parametrize("label", PAGES)
def test_no_list_reads_the_dates_of_all_rows(label):
    assert PAGES[label].date_hierarchy is None


@pytest.mark.parametrize("query", DATES)
@pytest.mark.parametrize("label", PAGES)
def test_a_date_that_does_not_exist_is_no_fault_of_the_server(db, label, query):
    browser = Client()
    browser.force_login(UserFactory(is_staff=True, is_superuser=True))
    app, model = label.split(".")

    response = browser.get(f"{reverse(f'admin:{app}_{model}_changelist')}?{query}")

    assert response.status_code in (200, 302, 400)
