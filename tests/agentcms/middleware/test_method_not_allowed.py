"""The 405 page of views that accept only POST."""

import pytest
from django.urls import reverse

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "address",
    [
        reverse("agents:selected"),
        reverse("exchange:export"),
        reverse("account:member", args=[1]),
        reverse("versions:review", args=["any"]),
        reverse("versions:undo", args=["any", 1]),
    ],
)
def test_get_of_a_post_view_is_a_405_page(publisher, address):
    answer = publisher.get(address)

    assert answer.status_code == 405
    assert answer.headers["Allow"] == "POST"
    assert "This page cannot be opened directly" in answer.content.decode()


def test_other_methods_have_no_page(publisher, agent):
    assert publisher.put(reverse("versions:undo", args=[agent.pk, 1])).content == b""
