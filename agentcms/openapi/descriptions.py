"""Descriptions of operations and parameters, and examples of request bodies."""

from __future__ import annotations

from agentcms.openapi.json_schema import JSON

EXAMPLE_UUID = "0198a6c2-7c1e-7d3a-9f00-5b1f8d2c4e6a"

# What an operation does beyond its summary: the required role, effects and limits. By the ID of the operation.
OPERATION_DESCRIPTIONS: dict[str, str] = {
    "listAgents": "Returns the agents that you may see, as pages or by cursor, as they are live or as drafts.",
    "createAgent": "Needs the editor role for the owner. The agent starts with version 1, which is live at once.",
    "getAgent": "Returns the live version. Send If-None-Match to get a 304 while nothing changed.",
    "updateAgent": "Records a version with the given fields and publishes it, which needs the publisher role. With "
    "autoPublish false it saves a draft, which needs the editor role. Nothing is recorded if nothing changes. "
    "Send If-Match to reject the change if somebody else saved in the meantime.",
    "deleteAgent": "Needs the publisher role. Runs and conversations are deleted at once. A 409 names the agents that "
    "use this one as a sub-agent.",
    "archiveAgent": "Needs the publisher role. Versions, history and runs stay.",
    "unarchiveAgent": "Needs the publisher role. The agent is in lists again and can run.",
    "listDeletedAgents": "Deleted agents are kept for TRASH_DAYS days with all versions.",
    "getDeletedAgent": "Returns an entry of the trash, without its versions.",
    "purgeDeletedAgent": "Needs the manager role. The versions are deleted too. This cannot be undone.",
    "restoreDeletedAgent": "Needs the publisher role. Live and head are as they were. Runs are not restored.",
    "duplicateAgent": "Needs the editor role for the new owner. Copies the live version by default. The copy has a "
    "history of its own.",
    "discardDraft": "Needs the editor role. The versions of the draft stay in the history.",
    "listDependents": "Names the agents that you may see and counts the others.",
    "listActivations": "The newest first. With the parameter at, the response is the version that was live then.",
    "undoActivation": "Needs the publisher role. A 409 says that the version was pruned or that the live version "
    "changed in the meantime.",
    "listVersions": "The newest first.",
    "createVersion": "Needs the editor role. Live and head do not change.",
    "compareVersions": "Takes the IDs of two versions of the agent, live or head.",
    "getVersion": "Returns the configuration under snapshot.",
    "updateVersion": "Needs the editor role. The configuration of a version never changes.",
    "deleteVersion": "Needs the publisher role. The live version cannot be deleted. Deleting the head discards the "
    "draft.",
    "activateVersion": "Needs the publisher role. Creates no version. Publishing the live version changes nothing.",
    "restoreVersion": "Publishes the new version, which needs the publisher role. With autoPublish false it is a "
    "draft, which needs the editor role.",
    "exportAgents": "Starts a job. Its file has one line for each agent that you may see.",
    "importAgents": "Needs the publisher role for the owners in the file. Starts a job; dryRun only checks the lines.",
    "getAgentSchema": "For editors and generators of agents.",
    "listJobs": "Exports and imports, without their results.",
    "getJob": "Repeat the request until state is done or failed.",
    "deleteJob": "A running job cannot be deleted.",
    "getJobFile": "Exists as soon as the job is done.",
    "listJobRecords": "One record for each line of the file, with the reason if it was not imported.",
    "listRunnableAgents": "Stored agents with a live version, and agents that are defined in code.",
    "listProviders": "Says for each provider whether it has an API key, and which setting is missing.",
    "getRunnableAgent": "The live version by default.",
    "generate": "Needs the editor role. Waits for the end of the run. A run that failed is a 424.",
    "stream": "Needs the editor role. Returns server-sent events. The run continues if you disconnect.",
    "observe": "Continues a stream after a lost connection.",
    "streamUntilIdle": "Needs the editor role. The published client uses it as stream.",
    "recover": "Needs the editor role. If the process of the run died, another one continues it. Streams all events.",
    "approveToolCall": "Needs the role of the call. The stream repeats the decided call, then goes on after the wait.",
    "declineToolCall": "Needs the role of the call. The model reads the reason, and the stream has its answer.",
    "approveToolCallGenerate": "Needs the role of the call. The response is that of generate.",
    "declineToolCallGenerate": "Needs the role of the call. The response is that of generate.",
    "resumeStream": "The data must fit resumeSchema. For a call that waits for approval, send {approved, reason?}.",
    "resumeStreamUntilIdle": "The published client uses it as resumeStream.",
    "sendToolApproval": "Finds the call by threadId and resourceId. The response does not wait for the run.",
    "network": "Needs the editor role. The same run as that of stream, with other chunks.",
    "approveNetworkToolCall": "A 409 names the calls if the run waits for several.",
    "declineNetworkToolCall": "A 409 names the calls if the run waits for several.",
    "resumeNetwork": "A 409 names the calls if the run waits for several.",
    "decideApproval": "Needs the role of the call. The same decision by the same user again is a 200. A 409 names who "
    "was faster, or says that the arguments are not those of mark.",
    "listSuspendedRuns": "Runs that you may read, the latest first, each with the calls that wait for a decision.",
    "listApprovals": "Calls of runs that you may read. Waiting ones: oldest first. Decided ones: latest first.",
    "getApproval": "What waits, for how long, and who may decide it. Or who decided it, and when.",
    "listRuns": "Your own runs; publishers also see the runs of the agents of their owners.",
    "getRun": "Includes the configuration that ran, the warnings and the scores.",
    "listEvents": "The events so far, in order. Ask again with the number of the last one.",
    "listSteps": "Requests to the model, tool calls and reads of the memory. A finished step never runs again.",
    "followRun": "Returns the events so far, then new ones as they occur, until the run ends.",
    "cancelRun": "Stops the run, in whichever process it is.",
    "getSchema": "This document, for generators of clients.",
}

PARAMETER_DESCRIPTIONS: dict[str, JSON] = {
    "agentId": {"description": "The ID of the agent, percent-encoded.", "example": "concierge"},
    "deletedId": {"description": "The ID of the entry in the trash.", "example": EXAMPLE_UUID},
    "versionId": {"description": "The ID of a version of the agent.", "example": EXAMPLE_UUID},
    "jobId": {"description": "The ID of the job.", "example": EXAMPLE_UUID},
    "runId": {"description": "The ID of the run.", "example": EXAMPLE_UUID},
    "approvalId": {"description": "The ID of the approval.", "example": EXAMPLE_UUID},
    "state": {"description": "Only calls in this state. `decided` is every state but open."},
    "threadId": {"description": "Only runs of this conversation."},
    "resourceId": {"description": "Only runs of conversations of this resource."},
    "fromDate": {"description": "Only runs that wait since this time or later."},
    "toDate": {"description": "Only runs that wait since this time or earlier."},
    "page": {"description": "The number of the page, from 0."},
    "perPage": {"description": "Entries on a page."},
    "orderBy": {"description": "The order of the entries."},
    "metadata": {"description": "Only agents whose metadata has these values, as JSON or as metadata[team]=a."},
    "status": {"description": "Which state: the live version, or the draft if there is one."},
    "ownerId": {"description": "Only of this owner. Blank is Shared."},
    "authorId": {"description": "Another name of ownerId."},
    "search": {"description": "Words and quoted phrases in the ID, name, description and instructions."},
    "versionNumber": {"description": "The number of a version, instead of its ID."},
    "at": {"description": "A time. The response is the version that was live then."},
    "force": {"description": "Act although other agents use this one as a sub-agent."},
    "dryRun": {"description": "Check the lines, and change nothing."},
    "publish": {"description": "Publish the changes of existing agents. Otherwise they become drafts."},
    "partial": {"description": "Leave out the schemas of tools."},
    "children": {"description": "Also the runs of sub-agents."},
    "kind": {"description": "Only jobs of this kind, such as export_agents."},
    "name": {"description": "The name of the file, for the messages of the versions."},
    "action": {"description": "Only lines with this outcome."},
    "after": {"description": "Only events with a higher number."},
}

# Parameters and defaults that differ between operations.
OWN_PARAMETERS: dict[str, dict[str, JSON]] = {
    "listAgents": {"perPage": {"default": 100}, "orderBy": {"default": {"field": "createdAt", "direction": "DESC"}}},
    "listVersions": {
        "perPage": {"default": 20},
        "orderBy": {"default": {"field": "versionNumber", "direction": "DESC"}},
    },
    "listActivations": {"perPage": {"default": 20}},
    "listDeletedAgents": {"perPage": {"default": 100}, "agentId": {"description": "Only agents that had this ID."}},
    "listJobs": {"perPage": {"default": 50}},
    "listJobRecords": {"perPage": {"default": 100}},
    "listRunnableAgents": {"perPage": {"default": 1000}},
    "listRuns": {
        "perPage": {"default": 50},
        "agentId": {"description": "Only runs of this agent."},
        "status": {"description": "Only runs in this state."},
    },
    "listEvents": {"perPage": {"default": 1000}},
    "listSteps": {"perPage": {"default": 100}},
    "listSuspendedRuns": {"perPage": {"default": 100}},
    "listApprovals": {"perPage": {"default": 50}, "agentId": {"description": "Only calls of runs of this agent."}},
}

# Examples of request bodies by the ID of the operation. The tests send them.
BODY_EXAMPLES: dict[str, JSON] = {
    "createAgent": {
        "id": "greeter",
        "name": "Greeter",
        "instructions": "Greet the guest by name.",
        "model": {"provider": "demo", "name": "echo"},
    },
    "updateAgent": {"instructions": "Greet the guest in one sentence.", "changeMessage": "Shorten the greeting"},
    "restoreDeletedAgent": {"id": "greeter-2"},
    "duplicateAgent": {"id": "night-greeter", "name": "Night greeter"},
    "undoActivation": {"changeMessage": "The new version answers too slowly"},
    "createVersion": {"name": "Before the trade fair", "pinned": True},
    "updateVersion": {"name": "Summer season"},
    "activateVersion": {"changeMessage": "Approved by the editors"},
    "restoreVersion": {"autoPublish": False},
    "generate": {"messages": "What is there to see?"},
    "stream": {"messages": [{"role": "user", "content": "What is there to see?"}], "temperature": 0.2},
    "observe": {"runId": EXAMPLE_UUID, "offset": 0},
    "streamUntilIdle": {"messages": "What is there to see?"},
    "recover": {"runId": EXAMPLE_UUID},
    "approveToolCall": {"runId": EXAMPLE_UUID, "toolCallId": "call_1"},
    "declineToolCall": {"runId": EXAMPLE_UUID, "toolCallId": "call_1", "reason": "The amount is too high."},
    "approveToolCallGenerate": {"runId": EXAMPLE_UUID, "toolCallId": "call_1"},
    "declineToolCallGenerate": {"runId": EXAMPLE_UUID, "toolCallId": "call_1", "reason": "The amount is too high."},
    "resumeStream": {"runId": EXAMPLE_UUID, "resumeData": {"size": "M"}},
    "resumeStreamUntilIdle": {"runId": EXAMPLE_UUID, "resumeData": {"size": "M"}},
    "sendToolApproval": {"resourceId": "ann", "threadId": "t1", "toolCallId": "call_1", "approved": True},
    "network": {"messages": "What is there to see?"},
    "approveNetworkToolCall": {"runId": EXAMPLE_UUID},
    "declineNetworkToolCall": {"runId": EXAMPLE_UUID, "reason": "The amount is too high."},
    "resumeNetwork": {"runId": EXAMPLE_UUID, "resumeData": {"size": "M"}},
    "decideApproval": {"decision": "decline", "reason": "The amount is too high."},
}
LINES_EXAMPLE = (
    '{"id": "greeter", "agent": {"name": "Greeter", "instructions": "Greet the guest.", '
    '"model": {"provider": "demo", "name": "echo"}}}\n'
)
