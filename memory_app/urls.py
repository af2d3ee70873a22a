"""URLs of the pages of conversations."""

from django.urls import path

from memory_app.views import acp_permissions, message_form, participants, polling, threads, working

app_name = "threads"

urlpatterns = [
    path("threads", threads.thread_list, name="list"),
    path("threads/<str:key>", threads.view, name="view"),
    path("threads/<str:key>/live", polling.live, name="live"),
    path("threads/<str:key>/send", message_form.send, name="send"),
    path("threads/<str:key>/export", threads.export, name="export"),
    path("threads/<str:key>/working-memory", working.edit, name="working_memory"),
    path("threads/<str:key>/working-memory/<int:revision>/restore", working.restore, name="restore_working_memory"),
    path("threads/<str:key>/participants", participants.edit_participants, name="participants"),
    path(
        "threads/<str:key>/participants/<int:user_id>/remove",
        participants.remove_participant,
        name="remove-participant",
    ),
    path(
        "threads/<str:key>/permissions/<int:permission_id>/revoke",
        acp_permissions.revoke_permission,
        name="revoke-permission",
    ),
    path("threads/<str:key>/delete", threads.delete, name="delete"),
]
