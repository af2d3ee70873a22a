"""Rules for the forms of all templates."""

import re
from pathlib import Path

import pytest

from agentcms.settings import BASE_DIR

FORM = re.compile(r"<form\b(?:[^>%]|%[^}]*%\}|%)*>")
TEMPLATES = sorted(path for path in (BASE_DIR / "templates").rglob("*.html") if "<form" in path.read_text())


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(BASE_DIR)))
def test_a_form_leaves_its_validation_to_the_server(template: Path):
    # Bubbles of the browser stand at the edge of the window and are not part of the page.
    forms = [tag for tag in FORM.findall(template.read_text()) if 'method="dialog"' not in tag]

    assert [tag for tag in forms if "novalidate" not in tag] == []


WITH_SAVE_KEY = [path for path in TEMPLATES if re.search(r"\bsave=True\b|\bdata-save-default\b", path.read_text())]


@pytest.mark.parametrize("template", WITH_SAVE_KEY, ids=lambda path: str(path.relative_to(BASE_DIR)))
def test_a_form_with_a_button_for_mod_s_is_saved_by_it(template: Path):
    assert [tag for tag in FORM.findall(template.read_text()) if re.search(r"\bdata-save\b(?!-)", tag)] != []


WITH_GUARD = [path for path in TEMPLATES if any("data-guard" in tag for tag in FORM.findall(path.read_text()))]


@pytest.mark.parametrize("template", WITH_GUARD, ids=lambda path: str(path.relative_to(BASE_DIR)))
def test_a_form_that_asks_before_text_is_lost_is_sent_by_the_keyboard(template: Path):
    text = template.read_text()
    has_run_button = re.search(r"\brun=True\b|\bdata-run\b", text) is not None

    forms = [tag for tag in FORM.findall(text) if "data-guard" in tag]
    assert [tag for tag in forms if not has_run_button and not re.search(r"\bdata-save\b(?!-)", tag)] == []
