import pytest
from django.db import connection
from django.http import HttpResponse

from agentcms.web.post_transactions import atomic_post


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("method", "is_atomic"), [("get", False), ("post", True)])
def test_only_a_post_begins_a_transaction(rf, method, is_atomic):
    @atomic_post
    def view(request, number):
        return HttpResponse(f"{number} {connection.in_atomic_block}")

    assert view(getattr(rf, method)("/"), number=3).content.decode() == f"3 {is_atomic}"
