"""Fields of the admin that offer teams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.exceptions import ValidationError

from access_app.role import SHARED_LABEL, Role
from access_app.teams import TEAM_PLACEHOLDER, can_be_offered, team_choices

UNKNOWN_TEAM_MESSAGE = "You manage no team with this ID. Enter the ID of a team, or nothing for Shared."


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
