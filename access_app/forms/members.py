"""Forms of the members of a team."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import UsernameField
from django.core.exceptions import ValidationError

from access_app.caller import Caller
from access_app.members import changing_members
from access_app.models import Membership
from access_app.role import Role

UNKNOWN_USERNAME_MESSAGE = "There is no user with this username."
MEMBER_MESSAGE = "This user is already a member. Change the role in the list."


class MemberForm(forms.ModelForm):
    """A form for a new member of a team, by username."""

    username = UsernameField(max_length=150, label="Username", widget=forms.TextInput)
    role = forms.ChoiceField(choices=Role.choices, initial=Role.EDITOR)

    class Meta:
        model = Membership
        fields: ClassVar = ["role"]

    def __init__(self, *args: Any, owner_id: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Not a field: the view has checked that the user manages this team.
        self.instance.owner_id = owner_id

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        # By the whole name: a list of all users would show managers of one team who is in the others.
        user = get_user_model().objects.filter(username=username, is_active=True).first()
        if user is None:
            raise ValidationError(UNKNOWN_USERNAME_MESSAGE)
        if Membership.objects.filter(user=user, owner_id=self.instance.owner_id).exists():
            raise ValidationError(MEMBER_MESSAGE)
        self.instance.user = user
        return username

    def add_member(self, manager: Caller) -> Membership | None:
        """Add the member. If another request did so after the check, add an error to the username and return None.

        Raise RoleRequired if the user no longer manages the team.
        """
        fields = {"user": self.instance.user, "owner_id": self.instance.owner_id}
        with changing_members(manager, self.instance.owner_id):
            added, is_new = Membership.objects.get_or_create(**fields, defaults={"role": self.cleaned_data["role"]})
        if not is_new:
            self.add_error("username", ValidationError(MEMBER_MESSAGE))
        return added if is_new else None


class RoleForm(forms.ModelForm):
    """A form for the role of a member. `seen` is the role that the page has shown."""

    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Membership
        fields: ClassVar = ["role"]
