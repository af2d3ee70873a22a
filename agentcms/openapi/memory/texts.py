"""The texts and examples of the operations of memory."""

from __future__ import annotations

from agentcms.wire.json_types import JSONObject

OWN_REALM_TEXT = "The conversations of the user, or those of the end users of the team that the API key serves."
MEMORY_DESCRIPTIONS: dict[str, str] = {
    "listThreads": f"{OWN_REALM_TEXT} A key for one resource lists its threads only.",
    "createThread": "The same request again returns the thread. A thread of another resource is a 409.",
    "getThread": "A thread of another realm is a 404, one of another resource than the named one a 403.",
    "updateThread": "A thread cannot change its resource by this route.",
    "deleteThread": "Its unfinished runs are stopped.",
    "listMessages": "Without an order: the newest page, oldest first. An answer with its tool calls is one message.",
    "cloneThread": "The copies of the messages have new IDs.",
    "transferThread": "All messages move along. Keys for one resource may not do this.",
    "getWorkingMemory": "Of the resource, or of the thread if the agent says so. With an ETag.",
    "updateWorkingMemory": "If-Match is optional. Without it the write wins. The value before it stays a revision.",
    "exportResource": "Starts a job. Its file has JSON lines: the threads, messages, working memory and runs.",
    "forgetResource": "Starts a job. Unfinished runs are stopped. This cannot be undone.",
    "listParticipants": "Members who read and write a thread that is not theirs.",
    "addParticipant": "A member of the team of the thread's agent.",
    "removeParticipant": "The messages of the participant stay.",
    "saveMessages": "The threads must exist. All are stored or none. File parts are a 400.",
    "deleteMessages": "All or none: if one ID is not found, nothing is deleted. If messages of several threads have "
    "an ID, name the thread or the resource.",
    "getMemoryConfig": "Of the live version. Null for an agent without memory.",
    "getMemoryStatus": "Says whether the agent has a memory, and how far the thread is observed.",
    "getObservationalMemory": "The record is null if nothing was observed yet. The history has the observations that "
    "reflections have replaced, the latest first.",
    "awaitBufferStatus": "Responds when no job of the thread makes observations, after at most 30 seconds.",
    "searchMemory": "Finds messages in a thread or in all threads of a resource. If the agent has semantic recall, "
    "the most similar ones come first, with scores. Otherwise the messages contain all words. The agent is that of "
    "`agentId`, or of the thread.",
    **dict.fromkeys(
        (
            "listNetworkThreads",
            "createNetworkThread",
            "getNetworkThread",
            "updateNetworkThread",
            "deleteNetworkThread",
            "listNetworkMessages",
            "saveNetworkMessages",
            "deleteNetworkMessages",
        ),
        "The same route under its older name, with networkId for agentId.",
    ),
}
MEMORY_EXAMPLES: dict[str, JSONObject] = {
    "createThread": {"threadId": "trip", "resourceId": "alice", "title": "A trip to Lisbon"},
    "updateThread": {"title": "A trip to Porto"},
    "cloneThread": {"newThreadId": "trip-2", "options": {"messageLimit": 10}},
    "transferThread": {"resourceId": "bob"},
    "updateWorkingMemory": {"workingMemory": "# Person\n- Name: Ann"},
    "awaitBufferStatus": {"agentId": "concierge", "threadId": "trip", "resourceId": "alice"},
    "addParticipant": {"username": "ann", "functionalRole": "editor"},
    "saveMessages": {
        "messages": [{"threadId": "trip", "resourceId": "alice", "role": "user", "content": "I like blue."}]
    },
    "deleteMessages": {"messageIds": ["m1", "m2"]},
}
