"""Inputs of all forms of pages, in which people may write from right to left."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from django import forms
from django.apps import apps

# Names that a program reads, and JSON: they are written from left to right.
TECHNICAL = {
    *("key", "form_id", "username", "model_provider", "model_name", "version", "embedder", "url"),
    *("owner_id", "filterable", "rerank", "type", "attributes", "context", "input_schema", "ground_truth_schema"),
    *("request_context_schema", "tool_mocks", "expected_trajectory", "request_context", "metadata"),
}
NO_TEXTS = (forms.PasswordInput, forms.HiddenInput, forms.EmailInput, forms.URLInput)


def page_forms() -> Iterator[type[forms.BaseForm]]:
    """Yield the forms of the pages of all applications. Those of the admin look like Django's."""
    for app in apps.get_app_configs():
        if app.name.endswith("_app"):
            for module in pkgutil.walk_packages(app.module.__path__, f"{app.name}."):
                if {"forms", "views"} & {*module.name.split(".")} and ".admin" not in module.name:
                    importlib.import_module(module.name)
    waiting = [forms.BaseForm]
    while waiting:
        form = waiting.pop()
        waiting += form.__subclasses__()
        if form.__module__.split(".")[0].endswith("_app") and ".admin" not in form.__module__:
            yield form


FORMS = sorted({*page_forms()}, key=lambda form: f"{form.__module__}.{form.__name__}")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.__module__}.{form.__name__}")
def test_the_browser_finds_the_direction_of_what_is_typed(form: type[forms.BaseForm]):
    texts = {
        name: field.widget
        for name, field in getattr(form, "base_fields", {}).items()
        if isinstance(field, forms.CharField) and isinstance(field.widget, forms.TextInput | forms.Textarea)
    }

    missing = {
        name for name, widget in texts.items() if not isinstance(widget, NO_TEXTS) and "dir" not in widget.attrs
    }
    assert missing - TECHNICAL == set()
