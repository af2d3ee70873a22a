"""Forms of the admin that refuse to overwrite what somebody else changed meanwhile."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.forms import ModelForm
from django.forms.models import model_to_dict
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

CHANGED_MESSAGE = "This {noun} was changed since you opened it. Copy your text, open it again and reapply it."
OPENED_STATE = "opened_state"  # the name of the input in templates/admin/change_form.html


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
