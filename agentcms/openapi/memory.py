"""The operations and schemas of conversations and what agents remember."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    JSON,
    OBJECT,
    STRING,
    array_of,
    nullable,
    object_of,
    ref,
)
from agentcms.openapi.operations import PAGING, Operation

THREADS_PATH = "/api/memory/threads"
THREAD = f"{THREADS_PATH}/{{threadId}}"
RESOURCE = "/api/memory/resources/{resourceId}"
NETWORK = "/api/memory/network"
PARTICIPANT = f"{THREAD}/participants/{{userId}}"
LIST_QUERY = (*PAGING, "agentId", "resourceId", "threadMetadata", "threadOrder")
MESSAGES_QUERY = (*PAGING, "agentId", "resourceId", "messageOrder", "filter", "include", "includeSystemReminders")
OF_THREAD = ("agentId", "resourceId")

MEMORY_OPERATIONS = (
    Operation("get", THREADS_PATH, "listThreads", "List the threads of a resource", "ThreadPage", query=LIST_QUERY),
    Operation(
        "post", THREADS_PATH, "createThread", "Create a thread", "Thread", "ThreadCreate", ("agentId",), 201, (409,)
    ),
    Operation("get", THREAD, "getThread", "Get a thread", "Thread", query=OF_THREAD),
    Operation("patch", THREAD, "updateThread", "Change title or metadata", "Thread", "ThreadChange", OF_THREAD),
    Operation("delete", THREAD, "deleteThread", "Delete a thread with its messages", "ThreadDeleted", query=OF_THREAD),
    Operation(
        "get", f"{THREAD}/messages", "listMessages", "List the messages of a thread", "MessagePage", "", MESSAGES_QUERY
    ),
    Operation(
        "post",
        f"{THREAD}/clone",
        "cloneThread",
        "Copy a thread",
        "ThreadClone",
        "CloneOptions",
        OF_THREAD,
        200,
        (409,),
    ),
    Operation(
        "post",
        f"{THREAD}/transfer",
        "transferThread",
        "Move a thread to another resource",
        "Thread",
        "Transfer",
        OF_THREAD,
    ),
    Operation(
        "get",
        f"{THREAD}/working-memory",
        "getWorkingMemory",
        "Get the working memory",
        "WorkingMemory",
        query=OF_THREAD,
    ),
    Operation(
        "post",
        f"{THREAD}/working-memory",
        "updateWorkingMemory",
        "Replace the working memory",
        "Written",
        "WorkingMemoryChange",
        OF_THREAD,
        200,
        (412,),
    ),
    Operation(
        "get",
        f"{THREAD}/participants",
        "listParticipants",
        "List the participants of a thread",
        "Participants",
        query=OF_THREAD,
    ),
    Operation(
        "post",
        f"{THREAD}/participants",
        "addParticipant",
        "Let a member take part in a thread",
        "Participant",
        "ParticipantCreate",
        OF_THREAD,
        201,
    ),
    Operation("delete", PARTICIPANT, "removeParticipant", "Remove a participant", "Done", query=OF_THREAD),
    Operation(
        "post",
        f"{RESOURCE}/export",
        "exportResource",
        "Export all data of a resource",
        "Job",
        status=202,
        errors=(429,),
    ),
    Operation("post", f"{RESOURCE}/forget", "forgetResource", "Delete all data of a resource", "Job", status=202),
    Operation(
        "post",
        "/api/memory/save-messages",
        "saveMessages",
        "Store messages",
        "SavedMessages",
        "MessagesToSave",
        ("agentId",),
        200,
        (409,),
    ),
    Operation(
        "post", "/api/memory/messages/delete", "deleteMessages", "Delete messages", "Done", "MessageIds", ("agentId",)
    ),
    Operation(
        "get", "/api/memory/config", "getMemoryConfig", "Get the memory of an agent", "MemoryConfig", "", ("agentId",)
    ),
    Operation(
        "get",
        "/api/memory/status",
        "getMemoryStatus",
        "Get the state of a memory",
        "MemoryStatus",
        "",
        ("agentId", "resourceId", "threadId"),
    ),
    Operation(
        "get",
        "/api/memory/search",
        "searchMemory",
        "Search in conversations",
        "MemoryResults",
        "",
        ("agentId", "searchQuery", "resourceId", "threadId", "limit", "memoryConfig"),
    ),
    Operation(
        "get", f"{NETWORK}/threads", "listNetworkThreads", "List threads: older name", "ThreadPage", query=LIST_QUERY
    ),
    Operation(
        "post",
        f"{NETWORK}/threads",
        "createNetworkThread",
        "Create a thread: older name",
        "Thread",
        "ThreadCreate",
        ("networkId",),
        201,
        (409,),
    ),
    Operation(
        "get",
        f"{NETWORK}/threads/{{threadId}}",
        "getNetworkThread",
        "Get a thread: older name",
        "Thread",
        query=OF_THREAD,
    ),
    Operation(
        "patch",
        f"{NETWORK}/threads/{{threadId}}",
        "updateNetworkThread",
        "Change a thread: older name",
        "Thread",
        "ThreadChange",
        OF_THREAD,
    ),
    Operation(
        "delete",
        f"{NETWORK}/threads/{{threadId}}",
        "deleteNetworkThread",
        "Delete a thread: older name",
        "ThreadDeleted",
        query=OF_THREAD,
    ),
    Operation(
        "get",
        f"{NETWORK}/threads/{{threadId}}/messages",
        "listNetworkMessages",
        "List messages: older name",
        "MessagePage",
        "",
        MESSAGES_QUERY,
    ),
    Operation(
        "post",
        f"{NETWORK}/save-messages",
        "saveNetworkMessages",
        "Store messages: older name",
        "SavedMessages",
        "MessagesToSave",
        ("networkId",),
        200,
        (409,),
    ),
    Operation(
        "post",
        f"{NETWORK}/messages/delete",
        "deleteNetworkMessages",
        "Delete messages: older name",
        "Done",
        "MessageIds",
        ("networkId",),
    ),
)

OWN_REALM = "The conversations of the user, or those of the end users of the team that the API key serves."
MEMORY_DESCRIPTIONS: dict[str, str] = {
    "listThreads": f"{OWN_REALM} A key for one resource lists its threads only.",
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
    "deleteMessages": "All or none: if one ID is not found, nothing is deleted.",
    "getMemoryConfig": "Of the live version. Null for an agent without memory.",
    "getMemoryStatus": "Says whether the agent has a memory.",
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

THREAD_PARAMETERS: dict[str, JSON] = {
    "threadId": {"description": "The ID of the thread.", "example": "t1"},
    "resourceId": {
        "description": "Whose memory it is. The default depends on the credentials.",
        "example": "alice",
    },
    "agentId": {"description": "The agent whose memory is used."},
    "networkId": {"description": "Another name of agentId."},
    "userId": {"description": "The ID of the user.", "example": "7"},
    "metadata": {"description": "Only threads whose metadata has these values."},
    "filter": {"description": "Only some messages: {dateRange: {start, end}, roles, metadata} as JSON."},
    "include": {"description": "Further messages: [{id, threadId?, withPreviousMessages?, withNextMessages?}]."},
    "includeSystemReminders": {"description": "Accepted for the published client."},
    "searchQuery": {"description": "The words to find."},
    "limit": {"description": "The highest number of results."},
    "memoryConfig": {"description": "As JSON: messageRange is the number of messages around each result."},
}
DEFAULT_PAGES = {"listThreads": 100, "listNetworkThreads": 100, "listMessages": 40, "listNetworkMessages": 40}
OWN_MEMORY_PARAMETERS: dict[str, dict[str, JSON]] = {
    operation.id: THREAD_PARAMETERS
    | ({"perPage": {"default": DEFAULT_PAGES[operation.id]}} if operation.id in DEFAULT_PAGES else {})
    for operation in MEMORY_OPERATIONS
}

ORDER: JSON = {
    "type": "object",
    "properties": {"field": {"enum": ["createdAt"]}, "direction": {"enum": ["ASC", "DESC"]}},
}
MEMORY_QUERY: dict[str, JSON] = {
    "threadMetadata": {"name": "metadata", "content": {"application/json": {"schema": OBJECT}}},
    "threadOrder": {
        "name": "orderBy",
        "style": "deepObject",
        "explode": True,
        "schema": {**ORDER, "properties": {**ORDER["properties"], "field": {"enum": ["createdAt", "updatedAt"]}}},
    },
    "messageOrder": {"name": "orderBy", "content": {"application/json": {"schema": ORDER}}},
    "limit": {"schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}},
}
MEMORY_EXAMPLES: dict[str, JSON] = {
    "createThread": {"threadId": "trip", "resourceId": "alice", "title": "A trip to Lisbon"},
    "updateThread": {"title": "A trip to Porto"},
    "cloneThread": {"newThreadId": "trip-2", "options": {"messageLimit": 10}},
    "transferThread": {"resourceId": "bob"},
    "updateWorkingMemory": {"workingMemory": "# Person\n- Name: Ann"},
    "addParticipant": {"username": "ann", "functionalRole": "editor"},
    "saveMessages": {
        "messages": [{"threadId": "trip", "resourceId": "alice", "role": "user", "content": "I like blue."}]
    },
    "deleteMessages": {"messageIds": ["m1", "m2"]},
}


def optional(**fields: JSON) -> JSON:
    """Return the schema of an object whose members may be absent."""
    return {"type": "object", "properties": fields}


def page(key: str, schema: str, **more: JSON) -> JSON:
    fields = {key: array_of(ref(schema)), **more}
    return object_of(**fields, total=INTEGER, page=INTEGER, perPage=INTEGER, hasMore=BOOLEAN)


def memory_schemas() -> dict[str, JSON]:
    """Return the schemas of the bodies and responses by name."""
    return thread_schemas() | working_memory_schemas() | message_schemas() | participant_schemas() | state_schemas()


def thread_schemas() -> dict[str, JSON]:
    thread = object_of(
        id=STRING, resourceId=STRING, title=STRING, metadata=OBJECT, createdAt=DATE_TIME, updatedAt=DATE_TIME
    )
    clone_options = optional(messageLimit=INTEGER, messageFilter=OBJECT)
    return {
        "Thread": thread,
        "ThreadPage": page("threads", "Thread"),
        "ThreadCreate": optional(resourceId=STRING, threadId=STRING, title=STRING, metadata=OBJECT),
        "ThreadChange": optional(title=STRING, metadata=OBJECT, resourceId=STRING),
        "ThreadDeleted": object_of(result=STRING),
        "ThreadClone": object_of(thread=ref("Thread"), clonedMessages=array_of(ref("Message"))),
        "CloneOptions": optional(
            newThreadId=STRING, resourceId=STRING, title=STRING, metadata=OBJECT, options=clone_options
        ),
        "Transfer": object_of(resourceId=STRING),
    }


def working_memory_schemas() -> dict[str, JSON]:
    change = optional(workingMemory=nullable(STRING), resourceId=STRING)
    return {
        "WorkingMemory": object_of(
            workingMemory=nullable(STRING),
            source={"enum": ["resource", "thread"]},
            workingMemoryTemplate=object_of(format={"enum": ["markdown", "json"]}, content={}),
            threadExists=BOOLEAN,
        ),
        "WorkingMemoryChange": {**change, "required": ["workingMemory"]},
        "Written": object_of(success=BOOLEAN),
    }


def message_schemas() -> dict[str, JSON]:
    message = object_of(
        id=STRING,
        threadId=STRING,
        resourceId=STRING,
        role={"enum": ["user", "assistant", "signal"]},
        createdAt=DATE_TIME,
        type={"enum": ["v2"]},
        content=OBJECT,
    )
    message["properties"] |= {"author": OBJECT}
    return {
        "Message": message,
        "MessagePage": page("messages", "Message", uiMessages=array_of(OBJECT)),
        "SavedMessages": object_of(messages=array_of(ref("Message"))),
        "MessagesToSave": object_of(messages=array_of(OBJECT)),
        "MessageIds": object_of(messageIds=ANY),
    }


def participant_schemas() -> dict[str, JSON]:
    return {
        "Participant": object_of(
            userId=INTEGER, username=STRING, name=STRING, functionalRole=nullable(STRING), createdAt=DATE_TIME
        ),
        "Participants": object_of(participants=array_of(ref("Participant"))),
        "ParticipantCreate": {
            **optional(username=STRING, name=STRING, functionalRole=STRING),
            "required": ["username"],
        },
    }


def state_schemas() -> dict[str, JSON]:
    return {
        "MemoryConfig": {**optional(memoryType=STRING, config=nullable(OBJECT)), "required": ["config"]},
        "MemoryStatus": object_of(result=BOOLEAN, memoryType=STRING, observationalMemory=OBJECT),
        "MemoryResults": object_of(
            results=array_of(OBJECT), count=INTEGER, query=STRING, searchScope=STRING, searchType=STRING
        ),
    }


MEMORY_FIELDS: dict[str, str] = {
    "Thread.id": "The ID of the thread.",
    "Thread.metadata": "Data of the client, at most 16 KB.",
    "Message.id": "The ID of the message.",
    "Message.type": "Always v2.",
    "Message.author": "Who wrote it: the ID and the name of a user.",
    "ThreadChange.resourceId": "The present resource; any other is a 403.",
    "CloneOptions.resourceId": "The resource of the copy. The default is that of the thread.",
    "CloneOptions.options": "Which messages are copied.",
    "Transfer.resourceId": "The new resource.",
    "MessagesToSave.messages": "Messages with threadId, resourceId, role and content.",
    "SavedMessages.messages": "The messages as they are stored.",
    "MessagePage.messages": "The messages of the page.",
    "ThreadDeleted.result": "What happened.",
    "ThreadClone.thread": "The copy.",
    "Participant.name": "The name in the thread.",
    "ParticipantCreate.name": "The name in the thread. The default is the username.",
    "MemoryStatus.result": "Whether the agent has a memory.",
    "threads": "The threads of the page.",
    "title": "The title of the thread.",
    "role": "Who speaks: user or assistant.",
    "content": "The parts of the message: texts and tool invocations.",
    "uiMessages": "The messages of the page in the form that user interfaces show.",
    "clonedMessages": "The messages of the copy.",
    "newThreadId": "The ID of the copy. The default is a new one.",
    "messageLimit": "Only so many of the newest messages.",
    "messageFilter": "Only messages by startDate, endDate or messageIds.",
    "messageIds": "The ID of a message, an object with it, or a list of both.",
    "workingMemory": "The text, or an object as JSON if the agent has a schema. Null without one.",
    "source": "Whether the resource or the thread has the working memory.",
    "workingMemoryTemplate": "The template in Markdown, or the JSON Schema.",
    "threadExists": "Whether there is a thread with this ID.",
    "format": "The format of the template.",
    "success": "Always true.",
    "participants": "The participants, in the order in which they were added.",
    "userId": "The ID of the user.",
    "username": "The name with which the user signs in.",
    "functionalRole": "What the participant does in the thread, such as editor.",
    "memoryType": "Always local.",
    "config": "The options of the memory. Null for an agent without memory.",
    "observationalMemory": "The state of observational memory.",
    "results": "The messages, the newest first, with the messages around each.",
    "count": "The number of results.",
    "query": "The words that were searched.",
    "searchScope": "Whether a thread or a resource was searched.",
    "searchType": "How the messages were found: semantic or text.",
}
