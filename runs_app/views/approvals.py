"""Pages of calls that wait for people: the list, one call, and its decision."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from access_app.caller import Caller
from agentcms.ids import parse_whole_number
from agentcms.web.dialogs import is_htmx, vary_on_htmx
from agents_app.configuration.schema import ConfigError
from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.approvals.errors import AlreadyDecided, ArgumentsChanged, CallExpired, NotSuspended
from runs_app.display.approvals import PendingCallView, build_approval_views
from runs_app.display.transcript import ToolCallPart
from runs_app.forms.decision import DecisionForm
from runs_app.models import PendingCall
from runs_app.views.approval_cards import RUN_PLACE, build_card
from runs_app.views.approval_count import count_decidable
from runs_app.views.approval_list import ApprovalListState

CONTINUES_MESSAGE = "The run continues."
# What a decision did, and what follows from it.
MESSAGES = {
    PendingCall.State.APPROVED: ("approved", CONTINUES_MESSAGE),
    PendingCall.State.DECLINED: ("declined", "The agent learns that it was declined."),
    PendingCall.State.RESUMED: ("answered", CONTINUES_MESSAGE),
}
STILL_WAITING_MESSAGE = "The run continues when its other calls are decided."


@require_safe
@login_required
def list_approvals(request: HttpRequest) -> HttpResponse:
    """Display the calls that wait for the user, those that wait for others, or decided ones."""
    listing = ApprovalListState(request.user, request.GET)
    cards = [build_card(view) for view in listing.views if listing.tab != "decided"]
    context = {
        "nav": "runs",
        "listing": listing,
        "available_filters": [*listing.available_filters()],
        "cards": cards,
        "approval_count": listing.number_to_decide,  # the header need not count again
    }
    return render(request, "approvals/list.html", context)


@require_safe
@login_required
def approval_count(request: HttpRequest) -> HttpResponse:
    """Render the bell of the header, or nothing if it already shows this number."""
    count = count_decidable(request.user)
    if parse_whole_number(request.GET.get("shown", "")) == count:
        return HttpResponse(status=204)
    return render(request, "approvals/_bell.html", {"approval_count": count})


@require_safe
@login_required
def approval(request: HttpRequest, call_id: UUID) -> HttpResponse:
    """Display a call: as a page, or as the fragment of a page with several calls."""
    call = get_call(request, call_id)
    response = render_call(request, call, mode=request.GET.get("mode", ""))
    if call.is_open or not is_htmx(request):
        return response
    # Somebody has decided it since the page was loaded, so that the numbers of waiting calls are old too.
    return trigger_client_event(response, "approval-decided", {"target": "body"})


@require_POST
@login_required
def decide_call(request: HttpRequest, call_id: UUID) -> HttpResponse:
    """Approve, decline or answer a call, or show its fields as JSON."""
    call = get_call(request, call_id)
    view = describe_call(request, call)
    form = DecisionForm.for_call(view, request.POST)
    show = request.POST.get("show", "")
    if show:
        return render_call(request, call, mode="edit", form=form, json_view=show.rpartition(":")[2])
    option = request.POST.get("option", "")
    if not option and not form.is_valid():
        return render_call(request, call, mode=request.POST.get("mode", ""), form=form, status=422)
    decision = choose_option(request, form, option) if option else read_decision(request, form)
    try:
        decided = decide_pending_call(call, decision, request.user, PendingCall.Via.PAGE)
    except AlreadyDecided as error:
        return render_decision_conflict(request, call, decided_notice(error.call, request.user))
    except (ArgumentsChanged, CallExpired, NotSuspended) as error:
        return render_decision_conflict(request, call, error.error)
    except ConfigError as error:
        form.add_issues(error.issues)
        mode = "" if view.is_question else "edit"  # a question can still be declined
        return render_call(request, call, mode=mode, form=form, status=422)
    return render_decided_call(request, decided)


def get_call(request: HttpRequest, call_id: UUID) -> PendingCall:
    """Return a call that the user may read. Raise Http404 for any other."""
    return get_object_or_404(PendingCall.objects.readable_by(request.user).select_related("run"), pk=call_id)


def describe_call(request: HttpRequest, call: PendingCall) -> PendingCallView:
    (view,) = build_approval_views([call], request.user)
    return view


def choose_option(request: HttpRequest, form: DecisionForm, option: str) -> Decision:
    """Return the decision for one of the options of a request for permission."""
    mark = request.POST.get(form["mark"].html_name, "")
    return Decision(Verdict.RESUME, resume_data={"outcome": "selected", "optionId": option}, mark=mark)


def read_decision(request: HttpRequest, form: DecisionForm) -> Decision:
    """Return the decision of a valid form."""
    verdict = request.POST["verdict"]
    is_edited = verdict == Verdict.APPROVE and request.POST.get("mode") == "edit" and form.is_edited
    return Decision(
        Verdict(verdict),
        reason=form.cleaned_data["reason"] if verdict == Verdict.DECLINE else "",
        arguments=form.edited if is_edited else None,
        resume_data=form.edited if verdict == Verdict.RESUME else None,
        mark=form.cleaned_data["mark"],
    )


def render_call(
    request: HttpRequest,
    call: PendingCall,
    *,
    mode: str = "",
    form: DecisionForm | None = None,
    json_view: str = "",
    notice: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render a call: a fragment for htmx, else a page."""
    view = describe_call(request, call)
    # Only a fragment can be on the page of the run. A page of its own has a link to the run.
    place = (request.POST.get("place") or request.GET.get("place", "")) if is_htmx(request) else ""
    context = {"nav": "runs", "card": build_card(view, place, mode, form, json_view), "notice": notice}
    template = "approvals/_card.html" if is_htmx(request) else "approvals/view.html"
    response = render(request, template, context, status=status)
    vary_on_htmx(response)
    return response


def render_decision_conflict(request: HttpRequest, call: PendingCall, notice: str) -> HttpResponse:
    """Render the current state of a call that was not decided, with the reason. Status 409."""
    call = get_call(request, call.pk)
    response = render_call(request, call, notice=notice, status=409)
    # The page of a run is reloaded by this event, so a toast has the reason there.
    message = {"message": notice} if request.POST.get("place") == RUN_PLACE else {}
    return trigger_client_event(response, "approval-decided", {"target": "body", **message})


def decided_notice(call: PendingCall, user: Caller) -> str:
    """Return who was faster, and what they decided. It may be the user, on another page."""
    if call.decided_by_id == user.pk:
        return f"You decided this call before: {call.get_state_display().lower()}. Your second decision was not used."
    name = call.decided_by_name or "Somebody else"
    return f"{name} was faster and chose: {call.get_state_display().lower()}. Your decision was not used."


def render_decided_call(request: HttpRequest, call: PendingCall) -> HttpResponse:
    """Show a decided call, with a message. Without htmx, return to the list or to the page of the run."""
    done, follows = MESSAGES[PendingCall.State(call.state)]
    if PendingCall.objects.waiting().filter(run=call.run_id, segment=call.segment).exists():
        follows = STILL_WAITING_MESSAGE
    message = f"{ToolCallPart(call.call_id, call.tool).title}: {done}. {follows}"
    if is_htmx(request):
        detail = {"target": "body", "message": message}
        return trigger_client_event(render_call(request, call), "approval-decided", detail)
    messages.success(request, message)
    return redirect(next_url(request))


def next_url(request: HttpRequest) -> str:
    """Return the page from which the decision was sent, if it belongs to this site."""
    url = request.POST.get("next", "")
    if not url.startswith("/"):  # `redirect` would take it for the name of a view
        return reverse("runs:approvals")
    is_safe = url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())
    return url if is_safe else reverse("runs:approvals")
