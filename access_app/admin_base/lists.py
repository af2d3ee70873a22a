"""Lists of the admin: their search, filters, selection and actions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import smart_split, unescape_string_literal

from access_app.admin_base.staff_roles import staff_has_role
from access_app.role import SHARED_LABEL, Role
from agentcms.db.text_conditions import MAX_SEARCH_WORDS, contains_text, like_ignores_case
from agentcms.plural import pluralize

INVALID_SELECTION_MESSAGE = "The selection contains a row that cannot exist. Select the rows again."
QUOTES = ('"', "'")


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
        # The choices of a date are parameters such as `created_at__gte`.
        is_offered = any(lookup == name or lookup.startswith(f"{name}__") for name in names)
        return is_offered and super().lookup_allowed(lookup, value, request)  # type: ignore[misc]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the actions whose role the user has in some team. Each checks the teams of its rows itself."""
        actions: dict[str, Any] = super().get_actions(request)  # type: ignore[misc]
        forbidden = {name for name, role in self.action_roles.items() if not staff_has_role(request, role)}
        return {name: action for name, action in actions.items() if name not in forbidden}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows with all words of a search, in upper or lower case. On SQLite, Django finds É by É only.

        It gets the other words. Words above MAX_SEARCH_WORDS are ignored.
        """
        words = [*smart_split(search_term)][:MAX_SEARCH_WORDS]
        names = [str(name) for name in self.get_search_fields(request)]  # type: ignore[attr-defined]
        for word in words if names else []:  # a list without a search shows all rows, whatever its URL asks
            # All others are left to Django, which also knows the prefixes of `search_fields`.
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


class TeamColumnMixin:
    """A mixin with the column `team`. The column `owner_id` of the model would be blank for Shared."""

    @admin.display(description="Team", ordering="owner_id")
    def team(self, row: Any) -> str:
        return row.owner_id or SHARED_LABEL


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


def list_text(values: Iterable[object]) -> str:
    """Return values separated by commas, or a dash for none."""
    return ", ".join(map(str, values)) or "–"
