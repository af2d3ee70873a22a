"""The number of tokens that the model of the editor reads at once."""

import pytest
from django.urls import reverse

pytestmark = pytest.mark.django_db


def limit(client, **model):
    return client.get(reverse("agents:token_limit"), model).content.decode()


def test_the_limit_of_a_known_model_is_shown(editor):
    html = limit(editor, provider="anthropic", model_name="claude-haiku-4-5")

    assert 'data-token-limit="200000"' in html
    assert "of 200,000" in html


@pytest.mark.parametrize("model", [{"provider": "demo", "model_name": "echo"}, {}, {"provider": "x" * 9000}])
def test_an_unknown_model_has_no_limit(editor, model):
    assert "data-token-limit" not in limit(editor, **model)
