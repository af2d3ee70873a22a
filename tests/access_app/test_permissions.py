"""Roles of users and keys for owners."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from access_app.models import ApiKey, Membership
from access_app.permissions import granted_role, has_role, has_role_everywhere, owner_ids_for, require_role, role_for
from access_app.role import Role, RoleRequired
from agents_app.models import Agent
from evals_app.models import Dataset
from tests.factories import AgentFactory, MembershipFactory, UserFactory, member

pytestmark = pytest.mark.django_db

ROLES = list(Role)


@pytest.fixture
def agents():
    """Return one agent for each of two owners and the shared space."""
    return {owner: AgentFactory(id=f"of-{owner or 'all'}", owner_id=owner) for owner in ("", "bar", "kitchen")}


def with_key(user, role="", **fields):
    """Return the user as authenticated by an API key with this role."""
    user.api_key = ApiKey.objects.issue(user, role=role, **fields)[0]
    return user


def visible_owners(user, role=Role.VIEWER):
    return sorted(Agent.objects.for_user(user, role).values_list("owner_id", flat=True))


# --- Shared rows


def test_only_members_of_a_team_see_shared_rows():
    dataset = Dataset.objects.create(id="shared", name="Shared")

    assert list(Dataset.objects.for_user(member(Role.VIEWER, "bar"))) == [dataset]
    assert list(Dataset.objects.for_user(UserFactory())) == []


# --- Memberships


@pytest.mark.parametrize("granted", ROLES)
def test_each_role_includes_the_lower_roles_only(granted):
    user = member(granted, "bar")

    allowed = [role for role in ROLES if has_role(user, role, "bar")]

    assert allowed == ROLES[: ROLES.index(granted) + 1]


@pytest.mark.parametrize("granted", ROLES)
def test_a_user_sees_agents_of_owners_that_granted_the_role(agents, granted):
    user = member(granted, "bar")

    assert [visible_owners(user, role) for role in ROLES] == [
        ["bar"] if granted.covers(role) else [] for role in ROLES
    ]


def test_a_membership_applies_to_its_owner_only(agents):
    user = member(Role.MANAGER, "bar")

    assert [role_for(user, owner) for owner in ("bar", "kitchen", "", "BAR", "bar ")] == [
        Role.MANAGER,
        None,
        None,
        None,
        None,
    ]


def test_the_shared_space_is_an_owner_like_any_other(agents):
    assert visible_owners(member(Role.VIEWER, "")) == [""]
    assert visible_owners(member(Role.VIEWER, "bar")) == ["bar"]


def test_each_membership_applies_to_its_own_owner(agents):
    user = member(Role.EDITOR, "bar")
    MembershipFactory(user=user, owner_id="", role=Role.VIEWER)

    assert visible_owners(user) == ["", "bar"]
    assert visible_owners(user, Role.EDITOR) == ["bar"]


def test_a_user_without_a_membership_sees_nothing(agents):
    assert visible_owners(UserFactory()) == []
    assert role_for(UserFactory(), "") is None


def test_an_anonymous_user_sees_nothing(agents):
    nobody = AnonymousUser()

    assert visible_owners(nobody) == []
    assert not any(has_role(nobody, role, "") for role in ROLES)


def test_an_inactive_user_has_no_role(agents):
    user = member(Role.MANAGER, "bar", is_active=False)

    assert visible_owners(user) == []
    assert role_for(user, "bar") is None


def test_a_deleted_membership_grants_nothing(agents):
    user = member(Role.MANAGER, "bar")

    user.memberships.all().delete()

    assert visible_owners(user) == []


def test_the_error_names_the_required_role_and_the_owner():
    with pytest.raises(RoleRequired, match=r"This needs the Publisher role in bar\. Save a draft\."):
        require_role(member(Role.EDITOR, "bar"), Role.PUBLISHER, "bar", "Save a draft.")


def test_a_granted_role_raises_no_error():
    require_role(member(Role.PUBLISHER, "bar"), Role.PUBLISHER, "bar")


def test_the_annotated_role_of_a_row_equals_the_role_of_the_user(agents):
    user = member(Role.EDITOR, "bar")

    rows = Agent.objects.annotate(granted=granted_role(user, "owner_id")).values_list("owner_id", "granted")

    assert dict(rows) == {"": None, "bar": "editor", "kitchen": None}


# --- Superusers


def test_a_superuser_has_every_role(agents):
    root = UserFactory(is_superuser=True)

    assert visible_owners(root, Role.MANAGER) == ["", "bar", "kitchen"]
    assert role_for(root, "an owner nobody knows") is Role.MANAGER


def test_staff_status_grants_no_role(agents):
    assert visible_owners(UserFactory(is_staff=True)) == []


def test_an_inactive_superuser_has_no_role(agents):
    root = UserFactory(is_superuser=True, is_active=False)

    assert visible_owners(root) == []
    assert not has_role_everywhere(root, Role.VIEWER)
    assert role_for(root, "bar") is None


@pytest.mark.parametrize("cut", ROLES)
def test_the_role_of_a_key_limits_a_superuser(agents, cut):
    root = with_key(UserFactory(is_superuser=True), cut)
    MembershipFactory(user=root, owner_id="bar", role=Role.MANAGER)

    assert [role for role in ROLES if has_role(root, role, "bar")] == ROLES[: ROLES.index(cut) + 1]
    assert [len(visible_owners(root, role)) for role in ROLES] == [3 if cut.covers(role) else 0 for role in ROLES]


# --- Keys


@pytest.mark.parametrize("cut", ROLES)
@pytest.mark.parametrize("granted", ROLES)
def test_a_key_has_the_lower_of_its_own_and_its_users_role(agents, granted, cut):
    user = with_key(member(granted, "bar"), cut)

    lower = min(granted, cut, key=lambda role: role.rank)

    assert role_for(user, "bar") is lower
    assert [visible_owners(user, role) for role in ROLES] == [["bar"] if lower.covers(role) else [] for role in ROLES]


def test_a_key_without_a_role_acts_as_its_user(agents):
    user = with_key(member(Role.EDITOR, "bar"))

    assert role_for(user, "bar") is Role.EDITOR


def test_a_key_grants_no_owner_that_its_user_lacks(agents):
    user = with_key(member(Role.VIEWER, "bar"), Role.MANAGER)

    assert visible_owners(user) == ["bar"]
    assert role_for(user, "kitchen") is None


def test_owners_respect_the_role_and_the_key():
    user = with_key(member(Role.MANAGER, "bar"), Role.VIEWER)

    assert list(owner_ids_for(user)) == ["bar"]
    assert list(owner_ids_for(user, Role.EDITOR)) == []


# --- Memberships as rows


def test_a_user_has_one_role_for_an_owner():
    user = member(Role.VIEWER, "bar")

    with pytest.raises(IntegrityError), transaction.atomic():
        MembershipFactory(user=user, owner_id="bar", role=Role.MANAGER)


def test_an_unknown_role_cannot_be_granted():
    with pytest.raises(IntegrityError), transaction.atomic():
        MembershipFactory(role="owner")


@pytest.mark.parametrize("owner", [" ", "a/b", ".", "..", "a\0b", "x" * 129])
def test_an_invalid_owner_id_is_refused(owner):
    with pytest.raises(ValidationError):
        Membership(user=UserFactory(), owner_id=owner, role=Role.VIEWER).full_clean()


def test_keys_expire_and_memberships_do_not():
    user = member(Role.VIEWER, "bar")

    key, _ = ApiKey.objects.issue(user, expires_at=timezone.now() - timedelta(seconds=1))

    assert not key.is_valid
    assert role_for(user, "bar") is Role.VIEWER
