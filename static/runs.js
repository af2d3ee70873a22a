// What Try it and the page of a run do beyond HTML and htmx: they listen to a run while it answers. What a run says is put
// into the page as text, never as HTML. Once it is over, the server's own picture of the answer takes its place.

(() => {
  "use strict";

  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const on = (event, handler, options) => document.addEventListener(event, handler, options);

  // --- listening

  const LONGEST_WAIT = 5000;
  const GONE = "This run is no longer there, or you have been signed out. Reload the page.";
  const PREFIXES = { "workflow-": "workflow", "agent-": "sub-agent" };
  const heard = new WeakSet(); // answers that are listened to, or were
  const listening = new Set();
  const figures = new Intl.NumberFormat("en");

  function listen(answer) {
    if (heard.has(answer)) return;
    heard.add(answer);
    const state = { answer, parts: $("[data-parts]", answer), last: Number(answer.dataset.after), source: null, wait: 250, tokens: 0 };
    state.began = performance.now() - Number(answer.dataset.seconds) * 1000;
    state.clock = setInterval(() => showElapsed(state), 100);
    listening.add(state);
    if (!document.hidden) connect(state);
    showStopAll();
  }

  function connect(state) {
    const source = (state.source = new EventSource(`${state.answer.dataset.stream}?after=${state.last}`));
    source.onopen = () => {
      state.wait = 250;
      say(state, "");
    };
    source.onmessage = (event) => {
      if (!state.answer.isConnected) return close(state);
      if (event.lastEventId) state.last = Number(event.lastEventId);
      if (event.data === "[DONE]") return finish(state);
      hear(state, JSON.parse(event.data));
    };
    // The browser reconnects by itself where it can, and says from where; where the server refused, we do.
    source.onerror = () => {
      if (!state.answer.isConnected) return close(state);
      say(state, "Reconnecting …");
      if (source.readyState === EventSource.CLOSED) comeBack(state, source);
    };
  }

  // The server refused: it is full or about to begin, or the run is no longer there for whom we are.
  async function comeBack(state, source) {
    const isGone = await vanished(state.answer.dataset.stream.replace(/stream$/, "answer"));
    if (state.source !== source || !listening.has(state)) return;
    if (isGone) {
      close(state);
      state.answer.removeAttribute("aria-busy");
      say(state, GONE);
      return showStopAll();
    }
    setTimeout(() => state.source === source && listening.has(state) && connect(state), state.wait);
    state.wait = Math.min(state.wait * 2, LONGEST_WAIT);
  }

  async function vanished(address) {
    try {
      const answer = await fetch(address, { method: "HEAD", redirect: "manual" });
      return answer.type === "opaqueredirect" || answer.status === 404;
    } catch {
      return false; // the server cannot be reached
    }
  }

  function close(state) {
    listening.delete(state);
    state.source?.close();
    clearInterval(state.clock);
  }

  // A browser holds few connections to one server: a tab that nobody looks at leaves them to the others.
  on("visibilitychange", () => {
    for (const state of listening) {
      state.source?.close();
      state.source = null;
      if (!document.hidden) connect(state);
    }
  });

  function finish(state) {
    close(state);
    state.answer.removeAttribute("aria-busy");
    state.answer.dispatchEvent(new Event("run-finished", { bubbles: true }));
    const place = $("#try-said");
    if (place) place.textContent = `${state.answer.getAttribute("aria-label")}: done.`;
    showStopAll();
  }

  function say(state, words) {
    const place = $("[data-trouble]", state.answer);
    if (place) place.textContent = words;
  }

  function showElapsed(state) {
    if (!state.answer.isConnected) return close(state);
    const place = $("[data-elapsed]", state.answer);
    const seconds = (performance.now() - state.began) / 1000;
    if (place) place.textContent = seconds < 9.95 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
  }

  on("htmx:response:error", ({ detail: { ctx } }) => {
    const answer = ctx.response.status === 404 && ctx.sourceElement.closest?.("[data-answer]");
    if (answer) say({ answer }, GONE);
  });

  // --- what is heard

  function hear(state, { type, payload = {} }) {
    if (!state.heard) showRunning(state);
    if (type === "text-start") begin(state, "text");
    else if (type === "text-delta") add(state, "text", payload.text);
    else if (type === "reasoning-start") begin(state, "thought");
    else if (type === "reasoning-delta") add(state, "thought", payload.text);
    else if (type === "tool-call") showCall(state, payload);
    else if (type === "tool-result" || type === "tool-error") showResult(state, payload);
    else if (type === "step-finish") showTokens(state, payload.output?.usage);
  }

  function showRunning(state) {
    state.heard = true;
    const chip = $(".page-header [data-run-status='queued']");
    if (!chip) return;
    chip.dataset.runStatus = "running";
    chip.lastChild.data = "Running";
  }

  function begin(state, kind) {
    const part = $(`#${kind}-template`).content.firstElementChild.cloneNode(true);
    const place = kind === "text" ? part : $(".answer-text", part);
    const text = place.appendChild(document.createTextNode(""));
    part.hidden = true; // until it says something
    state.open = { kind, part, text };
    state.parts.append(part);
  }

  function add(state, kind, words = "") {
    if (state.open?.kind !== kind) reopen(state, kind) || begin(state, kind);
    state.open.text.appendData(words);
    if (words) {
      state.open.part.hidden = false;
      $("[data-wait]", state.answer)?.remove();
    }
  }

  // A page that was loaded in the middle goes on with the passage that stands there.
  function reopen(state, kind) {
    const last = state.open ? null : state.parts.lastElementChild;
    const matches = kind === "text" ? last?.matches(".answer-text") : last?.matches(".thought");
    if (!matches) return false;
    const place = kind === "text" ? last : $(".answer-text", last);
    state.open = { kind, part: last, text: place.firstChild ?? place.appendChild(document.createTextNode("")) };
    return true;
  }

  function showCall(state, { toolCallId, toolName = "", args }) {
    const call = $("#call-template").content.firstElementChild.cloneNode(true);
    const prefix = Object.keys(PREFIXES).find((start) => toolName.startsWith(start)) || "";
    call.dataset.call = toolCallId;
    $("[data-call-noun]", call).textContent = PREFIXES[prefix] || "tool";
    $("[data-call-name]", call).textContent = toolName.slice(prefix.length);
    $("[data-call-arguments]", call).textContent = asText(args) || "nothing";
    call.began = performance.now();
    state.open = { kind: "call" };
    state.parts.append(call);
    $("[data-wait]", state.answer)?.remove();
  }

  function showResult(state, { toolCallId, result, error, isError }) {
    const call = $$("[data-call]", state.parts).find((each) => each.dataset.call === toolCallId);
    if (!call) return;
    const failed = Boolean(isError || error);
    call.dataset.state = failed ? "failed" : "done";
    $("[data-call-result]", call).textContent = asText(error ?? result) || "nothing";
    const took = call.began ? `${((performance.now() - call.began) / 1000).toFixed(1)} s` : "";
    $("[data-call-state]", call).textContent = failed ? `failed after ${took}` : took;
  }

  function showTokens(state, usage) {
    state.tokens += usage?.totalTokens || 0;
    const place = $("[data-tokens]", state.answer);
    if (!place || !state.tokens) return;
    place.hidden = false;
    place.textContent = `${figures.format(state.tokens)} token${state.tokens === 1 ? "" : "s"}`;
  }

  function asText(value) {
    if (value === undefined || value === null) return "";
    if (typeof value === "string") return value;
    return JSON.stringify(value, null, 2) === "{}" ? "" : JSON.stringify(value, null, 2);
  }

  // --- stopping them all

  const open = () => $$("[data-answer][aria-busy]");
  function showStopAll() {
    $$("[data-stop-all]").forEach((button) => (button.hidden = open().length < 2));
  }
  on("click", (event) => {
    if (event.target.closest("[data-stop-all]")) open().forEach((answer) => $("[data-stop]", answer)?.click());
    const stop = event.target.closest("[data-stop]");
    if (stop) setTimeout(() => (stop.disabled = true));
  });

  // --- start: once per page, and again after each swap for what is new

  function start() {
    $$("[data-stream]").forEach(listen);
    showStopAll();
  }
  on("htmx:after:swap", start);
  start();
})();
