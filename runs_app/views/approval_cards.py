"""Cards of calls that wait for people: in the list of approvals, and where the transcript of a run stops."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from access_app.caller import Caller
from agentcms.web.template_context import TemplateContext
from runs_app.approvals.lookup import waiting_calls_below
from runs_app.display.answer import RunView
from runs_app.display.approvals import PendingCallView, build_approval_views
from runs_app.display.spans import decision_text
from runs_app.forms.decision import DecisionForm
from runs_app.models import AgentRun, PendingCall

CARD_MODES = ("edit", "decline")
RUN_PLACE = "run"  # a page that shows the run too


def build_card(
    view: PendingCallView, place: str = "", mode: str = "", form: DecisionForm | None = None, json_view: str = ""
) -> TemplateContext:
    """Return the context of a card.

    Args:
        view: The call.
        place: `run` on pages that show the run too, blank elsewhere.
        mode: `edit` or `decline`, or blank for the buttons that lead there.
        form: The submitted form, if it has errors or changes its view.
        json_view: `json` or `fields` to change the view of the arguments.
    """
    has_fields = view.may_decide and mode != "decline" and (view.is_question or mode == "edit")
    has_fields = has_fields and view.permission is None  # its options are buttons
    form = form or DecisionForm.for_call(view)
    return {
        "view": view,
        "place": RUN_PLACE if place == RUN_PLACE else "",
        "mode": mode if view.may_decide and mode in CARD_MODES else "",
        "form": form,
        "fields": form.structured(json_view) if has_fields else None,
    }


def add_cards(run_views: Collection[RunView], user: Caller) -> None:
    """Add the calls for which runs wait, and the decisions about others, to their views.

    Readers without details see none.
    """
    add_refusals(run_views)
    for run_view in run_views:
        if run_view.run.status == AgentRun.Status.SUSPENDED and run_view.has_details:
            calls = [reachable.call for reachable in waiting_calls_below(run_view.run)]
            run_view.decisions = describe_decisions(run_view.run)
            run_view.cards = [build_card(view, RUN_PLACE) for view in build_approval_views(calls, user)]


def add_refusals(run_views: Iterable[RunView]) -> None:
    """Add why calls were not carried out, by one query, or none if no run can have such a call."""
    views: dict[UUID | None, RunView] = {
        view.run.pk: view for view in run_views if view.has_details and view.may_have_refusals
    }
    refused = (PendingCall.State.DECLINED, PendingCall.State.EXPIRED)
    if views:
        for call in PendingCall.objects.filter(run__in=views, state__in=refused):
            views[call.run_id].refusals[call.call_id] = decision_text(call)


def describe_decisions(run: AgentRun) -> dict[str, str]:
    """Return how the decided calls of a suspended run were decided, by their IDs in its transcript."""
    calls = run.pending_calls.filter(segment=run.segment).exclude(state=PendingCall.State.OPEN)
    return {call.call_id: "finished" if call.kind == PendingCall.Kind.CHILD else decision_text(call) for call in calls}
