"""The operations and schemas of conversations and what agents remember."""

from __future__ import annotations

from agentcms.openapi.json_schema import DATE_TIME, OBJECT
from agentcms.openapi.memory.schemas import MEMORY_FIELDS, memory_schemas
from agentcms.openapi.memory.texts import MEMORY_DESCRIPTIONS, MEMORY_EXAMPLES
from agentcms.openapi.operations import PAGING, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject

THREADS_PATH = "/api/memory/threads"
THREAD = f"{THREADS_PATH}/{{threadId}}"
RESOURCE = "/api/memory/resources/{resourceId}"
OBSERVATIONS = "/api/memory/observational-memory"
NETWORK = "/api/memory/network"
PARTICIPANT = f"{THREAD}/participants/{{userId}}"
LIST_QUERY = (*PAGING, "agentId", "resourceId", "threadMetadata", "threadOrder", "strict")
OF_THREAD = ("agentId", "resourceId")
OF_NETWORK_THREAD = ("networkId", "resourceId")
OF_MESSAGES = ("messageOrder", "filter", "include", "includeSystemReminders", "strict")
CHANGE_OF_THREAD = (*OF_THREAD, "strict")
CHANGE_OF_NETWORK_THREAD = (*OF_NETWORK_THREAD, "strict")

MEMORY_OPERATIONS = (
    Operation("get", THREADS_PATH, "listThreads", "List the threads of a resource", "ThreadPage", query=LIST_QUERY),
    Operation(
        "post",
        THREADS_PATH,
        "createThread",
        "Create a thread",
        "Thread",
        "ThreadCreate",
        ("agentId", "strict"),
        201,
        (409,),
    ),
    Operation("get", THREAD, "getThread", "Get a thread", "Thread", query=OF_THREAD),
    Operation("patch", THREAD, "updateThread", "Change title or metadata", "Thread", "ThreadChange", CHANGE_OF_THREAD),
    Operation("delete", THREAD, "deleteThread", "Delete a thread with its messages", "ThreadDeleted", query=OF_THREAD),
    Operation(
        "get",
        f"{THREAD}/messages",
        "listMessages",
        "List the messages of a thread",
        "MessagePage",
        query=(*PAGING, *OF_THREAD, *OF_MESSAGES),
    ),
    Operation(
        "post",
        f"{THREAD}/clone",
        "cloneThread",
        "Copy a thread",
        "ThreadClone",
        "CloneOptions",
        CHANGE_OF_THREAD,
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
        CHANGE_OF_THREAD,
    ),
    Operation(
        "get",
        f"{THREAD}/working-memory",
        "getWorkingMemory",
        "Get the working memory",
        "WorkingMemory",
        query=(*OF_THREAD, "memoryConfig"),
    ),
    Operation(
        "post",
        f"{THREAD}/working-memory",
        "updateWorkingMemory",
        "Replace the working memory",
        "Written",
        "WorkingMemoryChange",
        CHANGE_OF_THREAD,
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
        CHANGE_OF_THREAD,
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
        ("agentId", "strict"),
        200,
        (409,),
    ),
    Operation(
        "post",
        "/api/memory/messages/delete",
        "deleteMessages",
        "Delete messages",
        "Done",
        "MessageIds",
        ("agentId", "threadId", "resourceId", "strict"),
        200,
        (409,),
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
        OBSERVATIONS,
        "getObservationalMemory",
        "Get the observations of a thread",
        "ObservationalMemory",
        "",
        ("agentId", "resourceId", "threadId", "observedFrom", "observedTo", "offset", "historyLimit"),
    ),
    Operation(
        "post",
        f"{OBSERVATIONS}/buffer-status",
        "awaitBufferStatus",
        "Wait for the observations of a thread",
        "BufferStatus",
        "BufferStatusQuery",
        ("strict",),
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
        "get",
        f"{NETWORK}/threads",
        "listNetworkThreads",
        "List threads: older name",
        "ThreadPage",
        query=(*PAGING, *OF_NETWORK_THREAD, "threadMetadata", "threadOrder", "strict"),
    ),
    Operation(
        "post",
        f"{NETWORK}/threads",
        "createNetworkThread",
        "Create a thread: older name",
        "Thread",
        "ThreadCreate",
        ("networkId", "strict"),
        201,
        (409,),
    ),
    Operation(
        "get",
        f"{NETWORK}/threads/{{threadId}}",
        "getNetworkThread",
        "Get a thread: older name",
        "Thread",
        query=OF_NETWORK_THREAD,
    ),
    Operation(
        "patch",
        f"{NETWORK}/threads/{{threadId}}",
        "updateNetworkThread",
        "Change a thread: older name",
        "Thread",
        "ThreadChange",
        CHANGE_OF_NETWORK_THREAD,
    ),
    Operation(
        "delete",
        f"{NETWORK}/threads/{{threadId}}",
        "deleteNetworkThread",
        "Delete a thread: older name",
        "ThreadDeleted",
        query=OF_NETWORK_THREAD,
    ),
    Operation(
        "get",
        f"{NETWORK}/threads/{{threadId}}/messages",
        "listNetworkMessages",
        "List messages: older name",
        "MessagePage",
        query=(*PAGING, *OF_NETWORK_THREAD, *OF_MESSAGES),
    ),
    Operation(
        "post",
        f"{NETWORK}/save-messages",
        "saveNetworkMessages",
        "Store messages: older name",
        "SavedMessages",
        "MessagesToSave",
        ("networkId", "strict"),
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
        ("networkId", "threadId", "resourceId", "strict"),
    ),
)


THREAD_PARAMETERS: dict[str, JSONObject] = {
    "threadId": {"description": "The ID of the thread.", "example": "t1"},
    "resourceId": {
        "description": "Whose memory it is. The default depends on the credentials.",
        "example": "alice",
    },
    "agentId": {"description": "The agent whose memory is used. Routes that use no memory accept it too."},
    "networkId": {"description": "Another name of agentId."},
    "userId": {"description": "The ID of the user.", "example": "7"},
    "metadata": {"description": "Only threads whose metadata has these values."},
    "filter": {
        "description": "Only some messages, as JSON: "
        "{dateRange: {start, end, startExclusive?, endExclusive?}, roles, metadata}."
    },
    "include": {"description": "Further messages: [{id, threadId?, withPreviousMessages?, withNextMessages?}]."},
    "includeSystemReminders": {"description": "true: also signals of the types system-reminder and reactive."},
    "searchQuery": {"description": "The words to find."},
    "from": {"description": "Only earlier observations made from this time on."},
    "to": {"description": "Only earlier observations made until this time."},
    "offset": {"description": "The number of earlier observations to leave out."},
    "limit": {"description": "The highest number of results."},
    "memoryConfig": {
        "description": "As JSON. In searches, messageRange is the number of messages around each result. Of working "
        "memory, workingMemory chooses the scope, the template or the schema."
    },
}

ORDER: JSONObject = {
    "type": "object",
    "properties": {"field": {"enum": ["createdAt"]}, "direction": {"enum": ["ASC", "DESC"]}},
}
MEMORY_QUERY: dict[str, JSONObject] = {
    "threadMetadata": {"name": "metadata", "content": {"application/json": {"schema": OBJECT}}},
    "threadOrder": {
        "name": "orderBy",
        "style": "deepObject",
        "explode": True,
        "schema": {**ORDER, "properties": {**ORDER["properties"], "field": {"enum": ["createdAt", "updatedAt"]}}},
    },
    "messageOrder": {"name": "orderBy", "content": {"application/json": {"schema": ORDER}}},
    "limit": {"schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}},
    "observedFrom": {"name": "from", "schema": DATE_TIME},
    "observedTo": {"name": "to", "schema": DATE_TIME},
    "historyLimit": {"name": "limit", "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5}},
}

MEMORY_SECTION = ApiSection(
    MEMORY_OPERATIONS,
    {"": "Conversations"},
    memory_schemas,
    descriptions=MEMORY_DESCRIPTIONS,
    parameters=THREAD_PARAMETERS,
    page_sizes={"listMessages": 40, "listNetworkMessages": 40},
    query=MEMORY_QUERY,
    examples=MEMORY_EXAMPLES,
    fields=MEMORY_FIELDS,
)
