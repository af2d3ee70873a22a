"""The URLs of accounts and teams."""

from django.urls import path

from access_app import views

app_name = "account"

urlpatterns = [
    path("account/keys", views.keys, name="keys"),
    path("account/keys/<int:key_id>/revoke", views.revoke_key, name="revoke_key"),
    path("account/password", views.ChangePasswordView.as_view(), name="password"),
    path("team", views.team, name="team"),
    path("team/keys", views.team_keys, name="team_keys"),
    path("team/members/<int:membership_id>", views.member, name="member"),
    path("team/members/<int:membership_id>/remove", views.remove, name="remove_member"),
]
