"""The user of a request as a parameter of compiled queries.

    @compiled_query
    def visible_agents(*, user: CallerParam) -> QuerySet[Agent]:
        return Agent.objects.for_user(user)

Users who see every agent have a statement of their own. All members share one, with their id as its value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any

from access_app.permissions import has_role_everywhere
from access_app.role import Role
from agentcms.db.statements.parameters import IntegerParameter, Parameter


@dataclass(frozen=True)
class PlaceholderCaller:
    """A user during the compilation of a query: a superuser, or a member whose id is filled in later."""

    is_superuser: bool
    pk: int
    is_active: bool = True
    is_authenticated: bool = True


class CallerParameter(Parameter[Any]):
    """A user. Queries for users who see every agent differ from queries for members."""

    def variant(self, value: Any) -> Hashable:
        return has_role_everywhere(value, Role.VIEWER)

    def placeholder(self, number: int, variant: Hashable) -> object:
        return PlaceholderCaller(bool(variant), IntegerParameter().placeholder(number, None))

    def readers(self, placeholder: Any) -> dict[Hashable, Callable[[Any], Any]]:
        return {placeholder.pk: attrgetter("pk")}


CallerParam = Annotated[Any, CallerParameter()]
