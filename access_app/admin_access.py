"""Base classes for admin pages that are open to all staff."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.forms.models import model_to_dict
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.crypto import salted_hmac
from django.utils.text import smart_split, unescape_string_literal

from access_app.permissions import has_role_somewhere
from access_app.role import SHARED_LABEL, Role
from access_app.teams import TEAM_PLACEHOLDER, can_be_offered, team_choices
from agentcms.db.text_conditions import contains_text, like_ignores_case
from agentcms.plural import pluralize

INVALID_SELECTION_MESSAGE = "The selection contains a row that cannot exist. Select the rows again."
CHANGED_MESSAGE = "This {noun} was changed since you opened it. Copy your text, open it again and reapply it."
UNKNOWN_TEAM_MESSAGE = "You manage no team with this ID. Enter the ID of a team, or nothing for Shared."
QUOTES = ('"', "'")
OPENED_STATE = "opened_state"  # the name of the input in templates/admin/change_form.html


def offer_teams(field: Any, user: Any, *others: str) -> None:
    """Let a text field offer the teams that the user manages, and others, instead of any text."""
    offer_owners(field, [owner for owner, _ in team_choices(user, Role.MANAGER, *others)])


def offer_owners(field: Any, owners: Sequence[str]) -> None:
    """Let a text field offer these teams, or ask for the ID of one of them if they are very many."""
    field.strip = False  # the ID of a team may begin or end with a space
    if can_be_offered(owners):
        field.widget = forms.Select(choices=[(owner, owner or SHARED_LABEL) for owner in owners])
        return

    def validate_owner(owner_id: str) -> None:
        if owner_id not in owners:
            raise ValidationError(UNKNOWN_TEAM_MESSAGE, code="unknown_team")

    field.widget = AdminTextInputWidget({"placeholder": TEAM_PLACEHOLDER})
    field.validators = [*field.validators, validate_owner]  # not called for a blank text, which is Shared


class CheckedChangeList(ChangeList):
    """A list that refuses dates that do not exist, such as the year 99999 in a URL. Django would fail with a 500."""

    def get_results(self, request: HttpRequest) -> None:
        try:
            super().get_results(request)
        except (ValueError, OverflowError) as error:
            raise IncorrectLookupParameters from error


class CheckedListMixin:
    """A mixin whose list refuses filters that it does not offer, and dates and selected rows that cannot exist."""

    linked_filters: tuple[str, ...] = ()  # by which links on other pages filter the list
    action_roles: ClassVar[dict[str, Role]] = {}  # the roles that actions need in the team of a row

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow the filters of the page only: Django allows those by any column, also by hidden ones."""
        names = {*map(filter_name, self.get_list_filter(request)), *self.linked_filters}  # type: ignore[attr-defined]
        is_offered = any(lookup == name or lookup.startswith(f"{name}__") for name in names)
        return is_offered and super().lookup_allowed(lookup, value, request)  # type: ignore[misc]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the actions whose role the user has in some team. Each checks the teams of its rows itself."""
        actions: dict[str, Any] = super().get_actions(request)  # type: ignore[misc]
        is_allowed = {role: has_role_somewhere(request.user, role) for role in {*self.action_roles.values()}}
        forbidden = {name for name, role in self.action_roles.items() if not is_allowed[role]}
        return {name: action for name, action in actions.items() if name not in forbidden}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows with all words of a search, in upper or lower case. On SQLite, Django finds É by É only.

        It gets the other words.
        """
        words = [*smart_split(search_term)]
        names = [str(name) for name in self.get_search_fields(request)]  # type: ignore[attr-defined]
        for word in words:
            if not like_ignores_case(word):
                text = unescape_string_literal(word) if word[0] in QUOTES and word[0] == word[-1] else word
                conditions = (contains_text(name, text) for name in names if not name.endswith("__exact"))
                queryset = queryset.filter(reduce(or_, conditions))
        rest = " ".join(filter(like_ignores_case, words))
        results: tuple[QuerySet[Any], bool] = super().get_search_results(request, queryset, rest)  # type: ignore[misc]
        return results

    def get_changelist(self, request: HttpRequest, **options: object) -> type[ChangeList]:
        return CheckedChangeList

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *args: Any) -> Any:
        """Run an action unless a selected key is none. Django would fail with a 500."""
        primary_key = self.model._meta.pk  # type: ignore[attr-defined]
        if all(is_possible_key(primary_key, key) for key in request.POST.getlist(ACTION_CHECKBOX_NAME)):
            return super().response_action(request, queryset, *args)  # type: ignore[misc]
        messages.error(request, INVALID_SELECTION_MESSAGE)
        return redirect(request.get_full_path())

    def response_delete(self, request: HttpRequest, *args: Any) -> HttpResponse:
        """Return to the list after a deletion. Django leaves it for the index where no row can be changed."""
        response: HttpResponse = super().response_delete(request, *args)  # type: ignore[misc]
        if response.headers.get("Location") != reverse("admin:index"):
            return response
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")  # type: ignore[attr-defined]

    def report_action(self, request: HttpRequest, count: int, selected: int, noun: str, end: str, hint: str) -> None:
        """Show how many of the selected rows an action has changed. `hint` says why it has left out others."""
        text = f"{count:,} of {pluralize(selected, noun)} {end}"
        level = messages.SUCCESS if count else messages.WARNING
        messages.add_message(request, level, text if count == selected else f"{text} {hint}".rstrip())


class WithoutBulkDeletionMixin:
    """A mixin without Django's deletion of selected rows, whose question names no agents that lose something."""

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)  # type: ignore[misc]
        actions.pop("delete_selected", None)
        return actions


class OwnerFilter(admin.SimpleListFilter):
    """A filter by the teams of the rows that the user sees. That of Django has no choice for Shared."""

    title = "team"
    parameter_name = "owner"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        owners = model_admin.get_queryset(request).order_by("owner_id").values_list("owner_id", flat=True)
        return [(f"={owner}", owner or SHARED_LABEL) for owner in owners.distinct()[:200]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset if value is None else queryset.filter(owner_id=value.removeprefix("="))


def filter_name(item: Any) -> str:
    """Return the parameter of a filter: the name of a field, a field with its filter, or a filter of our own."""
    if isinstance(item, str):
        return item
    name: str = item[0] if isinstance(item, tuple) else item.parameter_name
    return name


def is_possible_key(primary_key: Any, text: str) -> bool:
    """Return True if a text can be the primary key of a row."""
    try:
        primary_key.to_python(text)
    except ValidationError:
        return False
    return "\0" not in text


class StaffAccessMixin(CheckedListMixin):
    """A mixin that shows the page to all staff. Roles decide on the rows; Django's permissions are not used."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)


class ConcurrentChangeForm(ModelForm):
    """A form that refuses a row which was changed since the page was opened. It would undo that change.

    The page has a hash of what the form shows, with a key: it also covers values that the user may not see.
    """

    page: Any = None  # the model admin

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Before the checks of the form, which change the instance.
        names = [name for name, field in self.fields.items() if not field.disabled]
        displayed = (model_to_dict(self.instance, names), self.page.displayed_beside_columns(self.instance))
        self.current_state = salted_hmac(
            "agentcms.admin.opened_state", repr(displayed), algorithm="sha256"
        ).hexdigest()

    @property
    def opened_state(self) -> str:
        """The state for the page: that of an invalid form stays the one that was opened."""
        return str(self.data.get(OPENED_STATE, self.current_state))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.opened_state != self.current_state:
            message = CHANGED_MESSAGE.format(noun=self.instance._meta.verbose_name)
            self.add_error(None, ValidationError(message, code="stale"))
        return cleaned


class ConcurrentChangeMixin:
    """A mixin whose change form refuses a row that others changed since the page was opened."""

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)  # type: ignore[misc]
        return form if obj is None else type(form.__name__, (ConcurrentChangeForm, form), {"page": self})

    def displayed_beside_columns(self, row: Any) -> object:
        """Return what the form shows besides columns with inputs of their own, such as the rows of an inline."""
        return None


class CheckedAgainMixin:
    """A mixin that checks a form again if another request took its key since the first check.

    The second check finds the row with this key, and reports it as an error of the form.
    """

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().changeform_view(request, *args, **kwargs)  # type: ignore[misc]
        except IntegrityError:
            return super().changeform_view(request, *args, **kwargs)  # type: ignore[misc]


class LockedRowMixin(ConcurrentChangeMixin):
    """A mixin that locks the row of a change form until it is saved.

    Django reads the row, and writes all of its columns after the checks of the form. Without the lock, what others
    store in between would be undone, such as that a key was revoked.
    """

    def changeform_view(self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any) -> Any:
        if request.method != "POST":
            return super().changeform_view(request, object_id, *args, **kwargs)  # type: ignore[misc]
        with transaction.atomic():
            self.lock_row(request, object_id)
            return super().changeform_view(request, object_id, *args, **kwargs)  # type: ignore[misc]

    def lock_row(self, request: HttpRequest, object_id: str | None) -> None:
        """Lock the row of the form. A form that adds one has none."""
        if object_id is None:
            return
        # Without `no_key`, nobody could insert a row that refers to this one by a foreign key until it is saved.
        rows = self.model._default_manager.select_for_update(no_key=True, of=("self",))  # type: ignore[attr-defined]
        with suppress(ValidationError, ValueError):  # an ID that Django does not find either
            rows.filter(pk=unquote(object_id)).first()


class LockedChangeMixin(CheckedAgainMixin, LockedRowMixin):
    """A mixin for forms of rows that others may change, or whose key they may take, at the same time."""


def confirmation_page(
    page: admin.ModelAdmin[Any], request: HttpRequest, template: str, title: str, **context: Any
) -> HttpResponse:
    """Return an admin page that asks for confirmation before an action."""
    common = {**page.admin_site.each_context(request), "title": title, "opts": page.opts}
    return TemplateResponse(request, f"admin/{template}.html", {**common, **context})


def list_text(values: Iterable[object]) -> str:
    """Return values separated by commas, or a dash for none."""
    return ", ".join(map(str, values)) or "–"


class ReadOnlyAdmin(StaffAccessMixin, admin.ModelAdmin):
    """An admin page without adding, changing and deleting. `get_queryset` limits the rows that staff see."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
