"""The form of a thread that shows what its agent would recall, and the links of recalled messages."""

from __future__ import annotations

from django.http import HttpRequest

from agentcms.vectors import EmbedderFailed, UnknownEmbedder
from agentcms.web.template_context import TemplateContext
from memory_app.models import Message, Thread
from memory_app.recall.options import RecallSettings, recall_options
from memory_app.recall.recalled_messages import RecallScope, excerpt_of_part, message_author
from memory_app.recall.search import embed_question, recall_messages
from memory_app.recall.surroundings import head_number_of
from memory_app.views.links import message_url
from runs_app.requests.facts import memory_for_caller

MAX_QUESTION_LENGTH = 2000


def recall_context(request: HttpRequest, thread: Thread) -> TemplateContext:
    """Return the context of the form: the question, the messages that it recalls, and an error of the embedder."""
    options = recall_options(memory_for_caller(thread.agent, request.user))
    question = request.GET.get("recall", "").strip()[:MAX_QUESTION_LENGTH]
    context: TemplateContext = {"recall_options": options, "question": question}
    if options is None or not question:
        return context
    try:
        return {**context, "recalled": find_recalled(request, thread, options, question)}
    except (EmbedderFailed, UnknownEmbedder) as error:
        return {**context, "recall_error": str(error)}


def find_recalled(
    request: HttpRequest, thread: Thread, options: RecallSettings, question: str
) -> list[TemplateContext]:
    """Return the messages that the agent would recall, as far as the user may read their threads."""
    readable = Thread.objects.readable_on_pages(request.user).filter(resource=thread.resource_id)
    threads = {thread.pk, *readable.values_list("pk", flat=True)}
    scope = RecallScope(thread.pk, thread.resource_id)
    recalled = recall_messages(
        scope.vectors(options),
        embed_question(options.embedder, question),
        options.top_k,
        threshold=options.threshold,
        is_known=lambda row: row.thread_id not in threads,  # so that readable messages take the places of the others
        distinct=True,
    )
    return [recalled_row(request, item.message, item.part, item.score) for item in recalled]


def recalled_row(request: HttpRequest, message: Message, part: int, score: float | None) -> TemplateContext:
    """Return a recalled message as the template shows it, with a link to its place in the thread."""
    thread = message.thread
    return {
        "url": message_url(request, thread, head_number_of(message)),
        "title": thread.title or thread.key,
        "author": message_author(message),
        "at": message.created_at,
        "text": excerpt_of_part(message.text, part),
        "score": score,
    }
