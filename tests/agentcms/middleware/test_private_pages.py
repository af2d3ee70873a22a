"""The cache headers of pages."""

import pytest
from django.urls import reverse

pytestmark = pytest.mark.django_db


def test_a_page_is_private(publisher):
    assert publisher.get(reverse("agents:list")).headers["Cache-Control"] == "private, no-cache"


def test_the_header_of_a_view_stays(client):
    assert "no-store" in client.get("/sign-in").headers["Cache-Control"]
