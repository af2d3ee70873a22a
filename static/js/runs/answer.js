// The answer of a run while it streams: add its events to the page. All text from a run is inserted as text, never as HTML.

(() => {
  "use strict";

  const { find, findAll, formatCount } = agentcms;
  const CALL_NOUNS = { "workflow-": "workflow", "agent-": "sub-agent" };
  const HANDLERS = {
    "text-start": (answer) => startPart(answer, "text"),
    "text-delta": (answer, payload) => appendText(answer, "text", payload.text),
    "reasoning-start": (answer) => startPart(answer, "thought"),
    "reasoning-delta": (answer, payload) => appendText(answer, "thought", payload.text),
    "step-discarded": discardAnswer,
    "tool-call": showCall,
    "tool-result": showResult,
    "tool-error": showResult,
    "step-finish": (answer, payload) => addTokens(answer, payload.output?.usage),
  };
  // Of agents outside of this application, as runs_app/display/activities.py describes them. One with the key of an earlier
  // activity takes its place.
  const ACTIVITIES = {
    "acp-thought": ({ text }) => ({ label: "Thought", text }),
    "acp-plan": ({ entries = [] }) => ({
      label: "Plan",
      text: formatCount(entries.length, "step"),
      lines: entries.map(({ content, status = "pending" }) => `${content} (${status})`),
      key: "plan",
    }),
    "acp-tool-call": ({ toolCallId, title, kind, status }) => ({
      label: "Tool",
      text: title || kind || "Tool",
      note: status,
      key: `tool ${toolCallId}`,
    }),
    "acp-file": ({ action, path }) => ({ label: "File", text: `${action === "write" ? "Wrote" : action} ${path}` }),
    "acp-permission": ({ title, allowed, reason }) => ({
      label: "Permission",
      text: title,
      note: allowed ? "allowed" : "rejected",
      lines: reason ? [reason] : [],
    }),
    "acp-session": ({ message }) => ({ label: "Session", text: message }),
    "acp-crash": ({ exitCode = null, stderr }) => ({
      label: "Error",
      text: "The program ended.",
      note: exitCode === null ? "" : `exit ${exitCode}`,
      lines: [stderr || "The program wrote no errors."],
    }),
  };

  // element: the [data-answer] in the page. currentPart: the part to which text is appended.
  function createAnswer(element) {
    return { element, parts: find("[data-parts]", element), tokens: 0, currentPart: null, isStarted: false };
  }

  function showEvent(answer, { type, payload = {} }) {
    if (!answer.isStarted) showRunning(answer);
    HANDLERS[type]?.(answer, payload);
    const activity = ACTIVITIES[type]?.(payload);
    if (activity) showActivity(answer, activity);
  }

  function showRunning(answer) {
    answer.isStarted = true;
    const chip = find(".page-header [data-run-status='queued']");
    if (!chip) return;
    chip.dataset.runStatus = "running";
    chip.lastChild.data = "Running";
  }

  const fromTemplate = (id) => find(`#${id}`).content.firstElementChild.cloneNode(true);
  const hidePlaceholder = (answer) => find("[data-wait]", answer.element)?.remove();

  // --- text and reasoning

  function startPart(answer, kind) {
    const element = fromTemplate(`${kind}-template`);
    const textElement = kind === "text" ? element : find(".answer-text", element);
    const text = textElement.appendChild(document.createTextNode(""));
    element.hidden = true; // until it has text
    answer.currentPart = { kind, element, text };
    answer.parts.append(element);
  }

  function appendText(answer, kind, text = "") {
    if (answer.currentPart?.kind !== kind && !continueLastPart(answer, kind)) startPart(answer, kind);
    answer.currentPart.text.appendData(text);
    if (!text) return;
    answer.currentPart.element.hidden = false;
    hidePlaceholder(answer);
  }

  // A page that was loaded during the run contains the beginning of the part. Return false if it does not.
  function continueLastPart(answer, kind) {
    const element = answer.currentPart ? null : answer.parts.lastElementChild;
    if (!element?.matches(kind === "text" ? ".answer-text" : ".thought")) return false;
    const textElement = kind === "text" ? element : find(".answer-text", element);
    const text = textElement.firstChild ?? textElement.appendChild(document.createTextNode(""));
    answer.currentPart = { kind, element, text };
    return true;
  }

  // Another process repeats the answer of the current step, which follows the last call.
  function discardAnswer(answer) {
    while (answer.parts.lastElementChild && !answer.parts.lastElementChild.matches("[data-call]")) {
      answer.parts.lastElementChild.remove();
    }
    answer.currentPart = { kind: "discarded" };
  }

  // --- calls of tools, workflows and sub-agents

  function showCall(answer, { toolCallId, toolName = "", args }) {
    const call = fromTemplate("call-template");
    const prefix = Object.keys(CALL_NOUNS).find((candidate) => toolName.startsWith(candidate)) || "";
    call.dataset.call = toolCallId;
    find("[data-call-noun]", call).textContent = CALL_NOUNS[prefix] || "tool";
    find("[data-call-name]", call).textContent = toolName.slice(prefix.length);
    find("[data-call-arguments]", call).textContent = formatValue(args) || "nothing";
    call.startedAt = performance.now();
    answer.currentPart = { kind: "call" };
    answer.parts.append(call);
    hidePlaceholder(answer);
  }

  function showResult(answer, { toolCallId, result, error, isError, args }) {
    const call = findAll("[data-call]", answer.parts).find((element) => element.dataset.call === toolCallId);
    if (!call) return;
    const failed = Boolean(isError || error);
    // The page says of a call that a person declined who did so. Its result is an error for the agent alone.
    const isRefused = failed && call.dataset.state === "not-run";
    if (!isRefused) call.dataset.state = failed ? "failed" : "done";
    find("[data-call-result]", call).textContent = formatValue(error ?? result) || "nothing";
    if (args) {
      find("[data-call-arguments]", call).textContent = formatValue(args) || "nothing";
      find("[data-call-arguments-label]", call).textContent = "Arguments, edited by a person";
    }
    if (isRefused) return;
    // A call that the page was opened with has no time of its start.
    const duration = call.startedAt ? `${((performance.now() - call.startedAt) / 1000).toFixed(1)} s` : "";
    const failure = duration ? `failed after ${duration}` : "failed";
    find("[data-call-state]", call).textContent = failed ? failure : duration;
  }

  function formatValue(value) {
    if (value === undefined || value === null) return "";
    if (typeof value === "string") return value;
    const json = JSON.stringify(value, null, 2);
    return json === "{}" ? "" : json;
  }

  // --- activities of agents outside of this application

  function showActivity(answer, { label, text = "", note = "", lines = [], key = "" }) {
    const last = answer.parts.lastElementChild;
    if (label === "Thought" && last?.dataset.activity === label) {
      find("[data-activity-text]", last).append(text);
      return;
    }
    const element = fromTemplate(lines.length ? "activity-lines-template" : "activity-template");
    element.dataset.activity = key || label;
    find(".call-noun", element).textContent = label;
    find("[data-activity-text]", element).textContent = text;
    find(".call-state", element).textContent = note;
    for (const line of lines) {
      const paragraph = find(".call-body", element).appendChild(document.createElement("p"));
      Object.assign(paragraph, { className: "prose", dir: "auto", textContent: line });
    }
    const earlier = key && findAll("[data-activity]", answer.parts).find((part) => part.dataset.activity === key);
    if (earlier) earlier.replaceWith(element);
    else answer.parts.append(element);
    answer.currentPart = { kind: "activity" };
    hidePlaceholder(answer);
  }

  // --- figures

  function addTokens(answer, usage) {
    answer.tokens += usage?.totalTokens || 0;
    const place = find("[data-tokens]", answer.element);
    if (!place || !answer.tokens) return;
    place.hidden = false;
    place.textContent = formatCount(answer.tokens, "token");
  }

  Object.assign(agentcms, { createAnswer, showEvent });
})();
