"""URLs of the API of conversations."""

from django.urls import path

from memory_app.api import agents, messages, observations, participants, search, threads, working

THREAD_PATH = "memory/threads/<str:thread_id>"
NETWORK_PATH = "memory/network"  # an older name of the same routes

urlpatterns = [
    path("memory/threads", threads.ThreadsView.as_view(), name="api-threads"),
    path(THREAD_PATH, threads.ThreadView.as_view(), name="api-thread"),
    path(f"{THREAD_PATH}/messages", messages.MessagesView.as_view(), name="api-thread-messages"),
    path(f"{THREAD_PATH}/clone", threads.CloneView.as_view(), name="api-thread-clone"),
    path(f"{THREAD_PATH}/transfer", threads.TransferView.as_view(), name="api-thread-transfer"),
    path(f"{THREAD_PATH}/working-memory", working.WorkingMemoryView.as_view(), name="api-thread-working-memory"),
    path(f"{THREAD_PATH}/participants", participants.ParticipantsView.as_view(), name="api-thread-participants"),
    path(
        f"{THREAD_PATH}/participants/<str:user_id>",
        participants.ParticipantView.as_view(),
        name="api-thread-participant",
    ),
    path("memory/save-messages", messages.SaveMessagesView.as_view(), name="api-save-messages"),
    path("memory/messages/delete", messages.DeleteMessagesView.as_view(), name="api-delete-messages"),
    path("memory/config", agents.MemoryConfigView.as_view(), name="api-memory-config"),
    path("memory/status", agents.MemoryStatusView.as_view(), name="api-memory-status"),
    path(
        "memory/observational-memory",
        observations.ObservationalMemoryView.as_view(),
        name="api-observational-memory",
    ),
    path(
        "memory/observational-memory/buffer-status",
        observations.BufferStatusView.as_view(),
        name="api-observation-buffer-status",
    ),
    path("memory/search", search.SearchMemoryView.as_view(), name="api-memory-search"),
    path(f"{NETWORK_PATH}/threads", threads.ThreadsView.as_view(), name="api-network-threads"),
    path(f"{NETWORK_PATH}/threads/<str:thread_id>", threads.ThreadView.as_view(), name="api-network-thread"),
    path(
        f"{NETWORK_PATH}/threads/<str:thread_id>/messages",
        messages.MessagesView.as_view(),
        name="api-network-thread-messages",
    ),
    path(f"{NETWORK_PATH}/save-messages", messages.SaveMessagesView.as_view(), name="api-network-save-messages"),
    path(f"{NETWORK_PATH}/messages/delete", messages.DeleteMessagesView.as_view(), name="api-network-delete-messages"),
]
