"""Views of sign-in, password, API keys and teams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.contrib.messages.views import SuccessMessageMixin
from django.core.exceptions import ValidationError
from django.core.paginator import Page, Paginator
from django.db.models import Count, Max, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse, reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from access_app.forms.keys import KeyForm, TeamKeyForm
from access_app.forms.members import MemberForm, RoleForm
from access_app.forms.password import NewPasswordForm
from access_app.forms.sign_in import SignInForm
from access_app.members import change_role, last_manager_message, remove_member
from access_app.models import ApiKey, Membership
from access_app.permissions import has_role, has_role_everywhere, owner_ids_for, require_role
from access_app.role import SHARED_LABEL, Role
from access_app.teams import can_be_offered, can_be_owner, managed_memberships, managed_owners
from agentcms.db.text_conditions import MAX_SEARCH_WORDS, any_contains_text, contains_text
from agentcms.first_user import FIRST_USER_COMMAND
from agentcms.web.dialogs import redirect_page, render_dialog
from agentcms.web.list_state import encode_query, search_text
from agentcms.web.template_context import TemplateContext

ROWS_PER_PAGE = 50


class ThrottledViewMixin:
    """A mixin for the page of a `ThrottledFormMixin`. It answers 422 for wrong input and 429 if throttled."""

    def form_invalid(self, form: Any) -> HttpResponse:
        response: HttpResponse = super().form_invalid(form)  # type: ignore[misc]
        response.status_code = 429 if form.wait else 422
        if form.wait:
            response.headers["Retry-After"] = str(form.wait)
        return response


class SignInView(ThrottledViewMixin, LoginView):
    """The sign-in page."""

    authentication_form = SignInForm
    template_name = "registration/login.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Redirect who is signed in, such as by the back button. The admin sends those who are no staff here."""
        user, url = cast(User, request.user), self.get_success_url()
        if user.is_authenticated and (user.is_staff or not url.startswith(reverse("admin:index"))):
            return HttpResponseRedirect(url)  # `redirect` would take a text without a slash for a name
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the command for the first user while there is none."""
        command = "" if User.objects.exists() else FIRST_USER_COMMAND
        return super().get_context_data(**kwargs, first_user_command=command)

    def form_invalid(self, form: Any) -> HttpResponse:
        form.focus_first_error()
        return super().form_invalid(form)


class ChangePasswordView(ThrottledViewMixin, SuccessMessageMixin, PasswordChangeView):
    """The page for a new password of the signed-in user."""

    form_class = NewPasswordForm
    template_name = "account/password.html"
    success_url = reverse_lazy("account:password")
    success_message = "Your password was changed. Other browsers were signed out."
    extra_context = {"tab": "password", "nav": "account"}

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "address": self.request.META.get("REMOTE_ADDR", "")}


# A token is shown once. The back button must not show it again from a cache.
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    """List the user's API keys and create new ones.

    The response of the POST shows the token: a redirect could not show it, because it is not stored.
    """
    form = KeyForm(request.POST or None)
    token, status = "", 200
    if request.method == "POST":
        if form.is_valid():
            token = form.issue_key(cast(User, request.user))
            form = KeyForm()
        else:
            status = 422
    owned = ApiKey.objects.filter(user=request.user.pk).select_related("user")
    context = {**key_context(request, owned), "form": form, "token": token, "tab": "keys", "nav": "account"}
    return render(request, "account/keys.html", context, status=status)


# As in `keys`.
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def team_keys(request: HttpRequest) -> HttpResponse:
    """List the API keys for the end users of a team that the user manages, and create new ones."""
    owner_id = request.GET.get("owner", "")
    if not can_be_owner(owner_id):
        raise Http404
    require_role(request.user, Role.MANAGER, owner_id)
    form = TeamKeyForm(request.POST or None)
    token = ""
    if request.method == "POST" and form.is_valid():
        token = form.issue_key(cast(User, request.user), realm_owner=owner_id)
        form = TeamKeyForm()
    issued = ApiKey.objects.filter(realm_owner=owner_id).select_related("user")
    context = {
        **key_context(request, issued, owner=owner_id),
        "form": form,
        "token": token,
        "nav": "team",
        "owner_id": owner_id,
    }
    # A form that is bound here has errors: after a success it is a blank one.
    return render(request, "account/team_keys.html", context, status=422 if form.is_bound else 200)


def key_context(request: HttpRequest, keys: QuerySet[ApiKey], **query: str) -> TemplateContext:
    """Return a page of API keys, of those whose name contains the search if there is one."""
    search = search_text(request.GET)
    if search:
        keys = keys.filter(contains_text("name", search) | Q(prefix__startswith=search))
        query["q"] = search
    return {"page": find_page(request, keys), "search": search, "query": urlencode(query)}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke_key(request: HttpRequest, key_id: int) -> HttpResponse:
    """Revoke an API key, after a question that says when it was last used."""
    key = get_object_or_404(ApiKey.objects.select_related("user"), revocable_by(request), pk=key_id)
    # The list of a team may have the manager's own keys. Its links say `team`, so that the manager returns to it.
    is_own = key.user_id == request.user.pk and "team" not in request.GET
    back = reverse("account:keys") if is_own else team_keys_url(key.realm_owner or "")
    if request.method == "POST":
        key.revoke()
        messages.success(request, f"The key “{key.name}” was revoked. It no longer works.")
        return redirect_page(request, back)
    context = {
        "nav": "account",
        "title": f"Revoke “{key.name}”?",
        "body": "account/_revoke_key.html",
        "key": key,
        "why_not": "This key no longer works. There is nothing to revoke." if key.has_ended else "",
        "buttons": [{"label": f"Revoke “{key.name}”", "kind": "danger"}],
        "back": back,
        "action": request.get_full_path(),
    }
    return render_dialog(request, context)


def revocable_by(request: HttpRequest) -> Q:
    """Return the condition of the keys that the user may revoke: own ones, and those for end users of own teams."""
    if has_role_everywhere(request.user, Role.MANAGER):  # also of a team without members
        return Q(user=request.user.pk) | Q(realm_owner__isnull=False)
    return Q(user=request.user.pk) | Q(realm_owner__in=managed_owners(request.user))


def team_keys_url(owner_id: str) -> str:
    """Return the URL of the API keys for the end users of a team."""
    return f"{reverse('account:team_keys')}?{urlencode({'owner': owner_id})}"


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def team(request: HttpRequest) -> HttpResponse:
    """Show a team that the user manages, and add members. Without such a team, list the user's memberships."""
    owners = managed_owners(request.user)
    if not owners and "owner" not in request.GET:
        return render(
            request, "account/memberships.html", {"memberships": other_memberships(request, owners), "nav": "team"}
        )
    owner_id = request.GET.get("owner", owners[0] if owners else "")
    if not can_be_owner(owner_id):
        raise Http404
    require_role(request.user, Role.MANAGER, owner_id)

    form = MemberForm(request.POST or None, owner_id=owner_id)
    if request.method == "POST" and form.is_valid() and (added := form.add_member(request.user)):
        messages.success(request, f"{added.user} now has the {added.get_role_display()} role.")
        return redirect(team_url(owner_id))
    return render_team(request, form, owner_id, owners)


def render_team(request: HttpRequest, form: MemberForm, owner_id: str, owners: list[str]) -> HttpResponse:
    """Render the page of a team, with status 422 for an invalid form."""
    context = {
        "nav": "team",
        "form": form,
        "owner_id": owner_id,
        "owners": sorted({*offered_teams(request, owners), owner_id}),
        "keys_url": team_keys_url(owner_id),
        "can_open_any_team": has_role_everywhere(request.user, Role.MANAGER),
        **member_context(request, owner_id),
        "other_memberships": other_memberships(request, owners),
        "roles": Role,
    }
    return render(request, "account/team.html", context, status=422 if form.is_bound else 200)


def offered_teams(request: HttpRequest, managed: list[str]) -> Iterable[str]:
    """Return the teams of the select: of very many, those in which the user is a manager. A form opens any other."""
    return managed if can_be_offered(managed) else owner_ids_for(request.user, Role.MANAGER)


def member_context(request: HttpRequest, owner_id: str) -> TemplateContext:
    """Return the members of a page of the team, those whose names contain the search if there is one."""
    members = Membership.objects.filter(owner_id=owner_id).select_related("user").order_by("user__username")
    name = search_text(request.GET)
    columns = ("user__username", "user__first_name", "user__last_name")
    for word in name.split()[:MAX_SEARCH_WORDS]:
        members = members.filter(any_contains_text(columns, word))
    query = urlencode({"owner": owner_id, "q": name} if name else {"owner": owner_id})
    return {"page": find_page(request, members), "name": name, "query": query, "place": encode_place(request)}


def find_page(request: HttpRequest, rows: QuerySet[Any]) -> Page[Any]:
    """Return the page of rows that the address names."""
    return Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page"))


def encode_place(request: HttpRequest) -> str:
    """Return the search and the page of the members that the address names."""
    return encode_query(q=request.GET.get("q", ""), page=request.GET.get("page", ""))


def at_same_place(request: HttpRequest, url: str) -> str:
    """Return a URL with the search and the page of the members, to which an action returns."""
    place = encode_place(request)
    return f"{url}&{place}" if place else url


def other_memberships(request: HttpRequest, managed: list[str]) -> QuerySet[Membership]:
    """Return the user's memberships in teams that the user does not manage."""
    memberships = Membership.objects.filter(user=request.user.pk)
    return memberships.exclude(owner_id__in=managed).order_by("owner_id")


@login_required
@require_POST
def member(request: HttpRequest, membership_id: int) -> HttpResponse:
    """Change the role of a member. Undo posts here too, with the role in the query."""
    membership = managed_membership(request, membership_id)
    form = RoleForm(request.POST if "role" in request.POST else request.GET)
    if not form.is_valid():
        messages.error(request, "The role was not changed. Choose one of the list.")
        return return_to_team(request, membership.owner_id)
    try:
        values = form.cleaned_data
        before = change_role(membership, Role(values["role"]), request.user, values["seen"])
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        undo_url = (
            f"{reverse('account:member', args=[membership.pk])}?{urlencode({'role': before, 'seen': membership.role})}"
        )
        undo_url = at_same_place(request, undo_url)
        # The tags of a message are the URL of its Undo button.
        message = f"{membership.user} now has the {membership.get_role_display()} role."
        messages.success(request, message, extra_tags=undo_url if may_undo(request, membership, before) else "")
    return return_to_team(request, membership.owner_id)


def may_undo(request: HttpRequest, membership: Membership, before: str) -> bool:
    """Return True if the role changed and the user still manages the team: managers can demote themselves."""
    return membership.role != before and membership.owner_id in managed_owners(request.user)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, membership_id: int) -> HttpResponse:
    """Remove a member from a team, after a question that says what the member loses."""
    membership = managed_membership(request, membership_id)
    if request.method == "POST":
        try:
            remove_member(membership, request.user)
            messages.success(request, f"{membership.user} is no longer a member.")
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        return return_to_team(request, membership.owner_id)
    context = {
        "nav": "team",
        "title": f"Remove {membership.user} from {membership.owner_id or SHARED_LABEL}?",
        "body": "account/_remove_member.html",
        "membership": membership,
        "keys": membership.user.api_keys.valid().aggregate(count=Count("pk"), last_used_at=Max("last_used_at")),
        "why_not": last_manager_message(membership),
        "buttons": [{"label": f"Remove {membership.user}", "kind": "danger"}],
        "back": at_same_place(request, team_url(membership.owner_id)),
        "action": request.get_full_path(),
    }
    return render_dialog(request, context)


def managed_membership(request: HttpRequest, membership_id: int) -> Membership:
    """Return a membership of a team that the user manages, or raise Http404."""
    # One of another team is a 404, so that the answer does not show whether it exists.
    return get_object_or_404(managed_memberships(request.user).select_related("user"), pk=membership_id)


def return_to_team(request: HttpRequest, owner_id: str) -> HttpResponse:
    """Redirect to the page of a team. Managers who have ended their own role get the page of their other teams."""
    may_return = has_role(request.user, Role.MANAGER, owner_id)
    url = at_same_place(request, team_url(owner_id)) if may_return else reverse("account:team")
    return redirect_page(request, url)


def team_url(owner_id: str) -> str:
    """Return the URL of the page of a team."""
    return f"{reverse('account:team')}?{urlencode({'owner': owner_id})}"
