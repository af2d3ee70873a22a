"""The schemas and fields of conversations in the API document."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    OBJECT,
    STRING,
    array_of,
    nullable,
    object_of,
    page_of,
    ref,
    with_optional_warnings,
)
from agentcms.wire.json_types import JSONObject


def optional(**fields: JSONObject) -> JSONObject:
    """Return the schema of an object whose members may be absent."""
    return {"type": "object", "properties": fields}


def memory_schemas() -> dict[str, JSONObject]:
    """Return the schemas of the bodies and responses by name."""
    return thread_schemas() | working_memory_schemas() | message_schemas() | participant_schemas() | state_schemas()


def thread_schemas() -> dict[str, JSONObject]:
    thread = object_of(
        id=STRING, resourceId=STRING, title=STRING, metadata=OBJECT, createdAt=DATE_TIME, updatedAt=DATE_TIME
    )
    clone_options = optional(messageLimit=INTEGER, messageFilter=OBJECT)
    return {
        "Thread": with_optional_warnings(thread),
        "ThreadPage": page_of("threads", "Thread"),
        "ThreadCreate": optional(resourceId=STRING, threadId=STRING, title=STRING, metadata=OBJECT),
        "ThreadChange": optional(title=STRING, metadata=OBJECT, resourceId=STRING),
        "ThreadDeleted": object_of(result=STRING),
        "ThreadClone": with_optional_warnings(
            object_of(thread=ref("Thread"), clonedMessages=array_of(ref("Message")))
        ),
        "CloneOptions": optional(
            newThreadId=STRING, resourceId=STRING, title=STRING, metadata=OBJECT, options=clone_options
        ),
        "Transfer": object_of(resourceId=STRING),
    }


def working_memory_schemas() -> dict[str, JSONObject]:
    change = optional(workingMemory=nullable(STRING), resourceId=STRING)
    return {
        "WorkingMemory": object_of(
            workingMemory=nullable(STRING),
            source={"enum": ["resource", "thread"]},
            workingMemoryTemplate=object_of(format={"enum": ["markdown", "json"]}, content={}),
            threadExists=BOOLEAN,
        ),
        "WorkingMemoryChange": {**change, "required": ["workingMemory"]},
        "Written": with_optional_warnings(object_of(success=BOOLEAN)),
    }


def message_schemas() -> dict[str, JSONObject]:
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
        "MessagePage": page_of("messages", "Message", uiMessages=array_of(OBJECT)),
        "SavedMessages": with_optional_warnings(object_of(messages=array_of(ref("Message")))),
        "MessagesToSave": object_of(messages=array_of(OBJECT)),
        "MessageIds": object_of(messageIds=ANY),
    }


def participant_schemas() -> dict[str, JSONObject]:
    participant = object_of(
        userId=INTEGER, username=STRING, name=STRING, functionalRole=nullable(STRING), createdAt=DATE_TIME
    )
    return {
        "Participant": with_optional_warnings(participant),
        "Participants": object_of(participants=array_of(ref("Participant"))),
        "ParticipantCreate": {
            **optional(username=STRING, name=STRING, functionalRole=STRING),
            "required": ["username"],
        },
    }


def state_schemas() -> dict[str, JSONObject]:
    return {
        "MemoryConfig": {**optional(memoryType=STRING, config=nullable(OBJECT)), "required": ["config"]},
        "MemoryStatus": object_of(result=BOOLEAN, memoryType=STRING, observationalMemory=OBJECT),
        "ObservationalMemory": object_of(record=nullable(OBJECT), history=array_of(OBJECT)),
        "BufferStatus": with_optional_warnings(object_of(record=nullable(OBJECT))),
        "BufferStatusQuery": {
            **optional(agentId=STRING, resourceId=STRING, threadId=STRING),
            "required": ["threadId"],
        },
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
    "record": "The observations as they are now.",
    "history": "The observations of earlier generations.",
    "threads": "The threads of the page.",
    "title": "The title of the thread.",
    "role": "Who speaks: user, assistant, or signal for an event that the agent was told of.",
    "content": "The parts of the message: texts and tool invocations.",
    "uiMessages": "The messages of the page in the form that user interfaces show, with their metadata.",
    "clonedMessages": "The messages of the copy.",
    "newThreadId": "The ID of the copy. The default is a new one.",
    "messageLimit": "At most this many of the newest messages.",
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
    "results": "The messages, the most similar or else the newest first, each with those around it.",
    "count": "The number of results.",
    "query": "The words that were searched.",
    "searchScope": "Whether a thread or a resource was searched.",
    "searchType": "How the messages were found: semantic or text.",
}
