// Streams of runs, in the playground and on the page of a run: receive the events of a run until it is over. The server then
// renders the answer, and htmx puts it in the place of the streamed one.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded, createAnswer, showEvent, reportSignedOut } = agentcms;
  const FIRST_RETRY_DELAY = 250;
  const MAX_RETRY_DELAY = 5000;
  const CLOCK_INTERVAL = 100;
  const ENDINGS = { finish: "done", abort: "stopped", error: "failed", suspended: "waits for a decision" }; // by the type of the last event
  const GONE_MESSAGE = "This run no longer exists, or you no longer have access to it.";
  const SIGNED_OUT_MESSAGE = "You have been signed out. Sign in in another tab, and the rest appears here.";

  const openStreams = new Set();
  const endedAnswers = new Set(); // until the server's rendering takes their place

  function openStream(element) {
    const stream = {
      element,
      answer: createAnswer(element),
      lastEvent: Number(element.dataset.after),
      startedAt: performance.now() - Number(element.dataset.seconds) * 1000,
      retryDelay: FIRST_RETRY_DELAY,
      ending: ENDINGS.finish,
      source: null,
    };
    stream.clock = setInterval(() => showElapsed(stream), CLOCK_INTERVAL);
    openStreams.add(stream);
    if (!document.hidden) connect(stream);
    updateStopAll();
  }

  function closeStream(stream) {
    openStreams.delete(stream);
    stream.source?.close();
    clearInterval(stream.clock);
  }

  // --- connection

  function connect(stream) {
    const source = (stream.source = new EventSource(`${stream.element.dataset.stream}?after=${stream.lastEvent}`));
    source.onopen = () => {
      stream.retryDelay = FIRST_RETRY_DELAY;
      showTrouble(stream.element, "");
    };
    source.onmessage = (event) => receive(stream, event);
    source.onerror = () => {
      if (!stream.element.isConnected) return closeStream(stream);
      showTrouble(stream.element, "Reconnecting …");
      // After a network error the browser reconnects. After an error status it does not.
      if (source.readyState === EventSource.CLOSED) reconnect(stream, source);
    };
  }

  function receive(stream, event) {
    if (!stream.element.isConnected) return closeStream(stream);
    if (event.lastEventId) stream.lastEvent = Number(event.lastEventId);
    if (event.data === "[DONE]") return finish(stream);
    // Somebody decided before the stream could end. The server knows how, and renders an answer that streams on.
    if (stream.ending === ENDINGS.suspended) return renderAgain(stream);
    const chunk = JSON.parse(event.data);
    stream.ending = ENDINGS[chunk.type] ?? stream.ending;
    showEvent(stream.answer, chunk);
  }

  // The server refused the connection: it is busy or starting, or the user has no access to the run.
  async function reconnect(stream, source) {
    const access = await findAccess(stream.element.dataset.stream.replace(/stream$/, "answer"));
    const isCurrent = () => stream.source === source && openStreams.has(stream);
    if (!isCurrent()) return;
    if (access === "gone") return abandon(stream);
    if (access === "signed out") return waitForSignIn(stream);
    setTimeout(() => isCurrent() && connect(stream), stream.retryDelay);
    stream.retryDelay = Math.min(stream.retryDelay * 2, MAX_RETRY_DELAY);
  }

  // A redirect leads to the sign-in page. Blank if the user has access, or the server cannot be reached.
  async function findAccess(url) {
    try {
      const response = await fetch(url, { method: "HEAD", redirect: "manual" });
      return response.type === "opaqueredirect" ? "signed out" : response.status === 404 ? "gone" : "";
    } catch {
      return "";
    }
  }

  // The stream stays open: it connects again when the user comes back to this tab.
  function waitForSignIn(stream) {
    showTrouble(stream.element, SIGNED_OUT_MESSAGE);
    reportSignedOut();
  }

  function abandon(stream) {
    closeStream(stream);
    stream.element.removeAttribute("aria-busy");
    showTrouble(stream.element, GONE_MESSAGE);
    updateStopAll();
  }

  function finish(stream) {
    renderAgain(stream);
    const announcement = find("#run-announcement");
    if (announcement) announcement.textContent = `${stream.element.getAttribute("aria-label")}: ${stream.ending}.`;
  }

  function renderAgain(stream) {
    closeStream(stream);
    stream.element.removeAttribute("aria-busy");
    endedAnswers.add(stream.element);
    requestEnded(stream.element);
    updateStopAll();
  }

  const requestEnded = (element) => element.dispatchEvent(new Event("run-finished", { bubbles: true }));

  function eachEndedAnswer(visit) {
    endedAnswers.forEach((element) => (element.isConnected ? visit(element) : endedAnswers.delete(element)));
  }

  // Otherwise an answer that ended while the user was signed out would stay as it was streamed.
  listen("session-expired", () => eachEndedAnswer((element) => showTrouble(element, SIGNED_OUT_MESSAGE)));
  listen("visibilitychange", () => document.hidden || eachEndedAnswer(requestEnded));

  // A browser allows six connections to a server over HTTP/1.1: a hidden tab leaves them to other tabs.
  listen("visibilitychange", () => {
    for (const stream of openStreams) {
      stream.source?.close();
      stream.source = null;
      if (!document.hidden) connect(stream);
    }
  });

  // --- status

  function showTrouble(element, message) {
    const place = find("[data-trouble]", element);
    if (place) place.textContent = message;
  }

  function showElapsed(stream) {
    if (!stream.element.isConnected) return closeStream(stream);
    const place = find("[data-elapsed]", stream.element);
    const seconds = (performance.now() - stream.startedAt) / 1000;
    if (place) place.textContent = seconds < 9.95 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
  }

  // The connection was lost when the run ended: request the finished answer again, because nothing else would.
  listen("htmx:error", ({ detail: { ctx } }) => {
    const element = ctx?.sourceElement;
    const answer = element?.matches("[data-stream]") ? element : find("[data-stream]", element ?? document);
    if (ctx?.sourceEvent?.type !== "run-finished" || !answer?.isConnected) return;
    showTrouble(answer, "Reconnecting …");
    setTimeout(() => requestEnded(answer), MAX_RETRY_DELAY);
  });

  listen("htmx:response:error", ({ detail: { ctx } }) => {
    const element = ctx.response.status === 404 && ctx.sourceElement.closest?.("[data-answer]");
    if (element) showTrouble(element, GONE_MESSAGE);
  });

  // --- stopping

  const runningAnswers = () => findAll("[data-answer][aria-busy]");

  function updateStopAll() {
    findAll("[data-stop-all]").forEach((button) => (button.hidden = runningAnswers().length < 2));
  }

  listen("click", (event) => {
    const stopAll = event.target.closest("[data-stop-all]");
    if (stopAll) {
      passFocus(stopAll, runningAnswers()[0]);
      runningAnswers().forEach((element) => find("[data-stop]", element)?.click());
    }
    const stop = event.target.closest("[data-stop]");
    // Not at once: the browser does not submit a form by a disabled button.
    if (stop) setTimeout(() => disable(stop));
  });

  function disable(stop) {
    passFocus(stop, stop.closest("[data-answer]"));
    stop.disabled = true;
  }

  // A button that is hidden or disabled loses the focus to the beginning of the page.
  function passFocus(button, answer) {
    if (!answer || document.activeElement !== button) return;
    answer.tabIndex = -1;
    answer.focus({ preventScroll: true });
  }

  // A request that did not reach the run can be repeated.
  listen("htmx:finally:request", ({ detail: { ctx } }) => {
    const stop = ctx.response?.status !== 204 && find("[data-stop]", ctx.sourceElement);
    if (stop && ctx.sourceElement.matches("form")) stop.disabled = false;
  });

  onAdded("[data-stream]", openStream);
  addEventListener("htmx:after:swap", updateStopAll);
  updateStopAll();
})();
