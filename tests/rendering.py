"""The contexts of pages, which the test client of Django records.

Django records the context of each template that a page includes too, dozens for each page. No test reads those.
"""

from django.template import Context, Template
from django.test import utils
from django.test.signals import template_rendered
from django.utils.safestring import SafeString


def record_contexts_of_pages() -> None:
    """Let the test environment of Django record the contexts of pages only."""
    utils.instrumented_test_render = render_and_record_page


def render_and_record_page(template: Template, context: Context) -> SafeString:
    """Render a template. Send its context to the test client unless another template includes or extends it."""
    if context.template is template:
        template_rendered.send(sender=template, template=template, context=context)
    return template.nodelist.render(context)
