"""The labels of the lists and pages of the admin."""

import re

import pytest
from django.contrib import admin
from django.contrib.admin.utils import flatten, label_for_field
from django.test import RequestFactory

RAW = re.compile(r"\bowner\b|\bids?\b|\b(?:by|author) name$", re.IGNORECASE)
PLAIN = re.compile(r"\bID\b|\bIDs\b")
PAGES = {model._meta.label: page for model, page in admin.site._registry.items()}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_no_label_is_the_name_of_a_column(page, admin_user):
    request = RequestFactory().get("/admin/")
    request.user = admin_user
    names = [name for name in page.get_list_display(request) if name not in ("__str__", "id")]
    names += [name for name in flatten(page.fields or ()) if name not in names]

    labels = [str(label_for_field(name, page.model, page)) for name in names if is_known(page, name)]

    assert [label for label in labels if RAW.search(PLAIN.sub("", label))] == []


def is_known(page, name):
    return hasattr(page, name) or hasattr(page.model, name)
