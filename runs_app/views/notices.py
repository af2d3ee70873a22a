"""The account page of notices about approvals."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from runs_app.models import ApprovalNotice
from runs_app.notices.mail import can_send_mail


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def notices(request: HttpRequest) -> HttpResponse:
    """Display and save whether the user wants e-mail about calls that wait for them."""
    user = cast(User, request.user)
    if request.method == "POST":
        by_email = request.POST.get("by_email") == "on"
        ApprovalNotice.objects.update_or_create(user=user, defaults={"by_email": by_email})
        messages.success(
            request, "You get e-mail about approvals." if by_email else "You no longer get e-mail about approvals."
        )
        return redirect("runs:notices")
    notice = ApprovalNotice.objects.filter(user=user).first() or ApprovalNotice(user=user)
    context = {"nav": "account", "tab": "notices", "notice": notice, "can_send_mail": can_send_mail()}
    return render(request, "account/notices.html", context)
