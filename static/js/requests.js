// Requests of htmx: the CSRF token, messages in responses, expired sessions, errors, and other tabs.

(() => {
  "use strict";

  const { find, listen, showToast } = agentcms;
  const page = document.body;

  // --- the CSRF token, which another sign-in replaces, and the user of this page, which the server compares

  const { user } = page.dataset;
  const csrfToken = () => document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1];

  listen("formdata", ({ formData }) => {
    if (!formData.has("csrfmiddlewaretoken")) return;
    if (csrfToken()) formData.set("csrfmiddlewaretoken", csrfToken());
    if (user) formData.set("page_user", user);
  });
  listen("htmx:config:request", (event) => {
    const { headers, body } = event.detail.ctx.request;
    if (headers["X-CSRFToken"] && csrfToken()) headers["X-CSRFToken"] = csrfToken();
    if (user) headers["X-Page-User"] = user;
    // The server prefers the field, which is in the request of any control of a form.
    if (body?.has("csrfmiddlewaretoken") && csrfToken()) body.set("csrfmiddlewaretoken", csrfToken());
  });

  // --- responses

  // A response without content confirms the action of a dialog. Close it before a toast is shown.
  listen("htmx:finally:request", (event) => {
    const { ctx } = event.detail;
    if (ctx.response?.status === 204) ctx.sourceElement.closest("#dialogs > dialog")?.close();
  });

  // Each event in HX-Trigger that has a message becomes a toast.
  listen("htmx:finally:request", (event) => messagesOf(event.detail.ctx).forEach(showToast));

  const messagesOf = (ctx) => Object.values(parseTrigger(ctx?.hx?.trigger)).filter((detail) => detail?.message);

  // HX-Trigger is a JSON object of events and their details, or a list of names. Return an object.
  function parseTrigger(header) {
    const trigger = header || "";
    if (!trigger.startsWith("{")) return Object.fromEntries(trigger.split(/\s*,\s*/).map((name) => [name, {}]));
    try {
      return JSON.parse(trigger);
    } catch {
      return {};
    }
  }

  // --- other tabs of this browser that show the same agent: they fetch the history again

  const channel = new BroadcastChannel("agentcms");
  const agentPath = (path) => path.match(/^\/agents\/[^/?]+/)?.[0];

  listen("htmx:finally:request", (event) => {
    const { ctx } = event.detail;
    const agent = /"(agent-saved|history-changed)"/.test(ctx.hx?.trigger || "") && agentPath(ctx.request.action);
    if (agent) channel.postMessage(agent);
  });
  channel.addEventListener("message", ({ data }) => {
    if (data === agentPath(location.pathname)) page.dispatchEvent(new Event("changed-elsewhere"));
  });

  // --- errors

  // After the session has expired, the server redirects to the sign-in page, which must not be swapped in.
  listen("htmx:before:response", (event) => {
    const { raw } = event.detail.ctx.response;
    const { loginUrl } = page.dataset;
    if (!loginUrl || !raw.redirected || new URL(raw.url).pathname !== loginUrl) return;
    event.preventDefault();
    document.dispatchEvent(new Event("session-expired"));
    reportSignedOut(event.detail.ctx);
  });

  // The toast about a lost connection, until a response arrives. What polls, or sends without htmx, shows it once.
  let connectionToast = null;
  let isReported = false;
  const isPoll = (ctx) => ctx.sourceEvent?.type === "every";

  listen("htmx:after:request", ({ detail: { ctx } }) => {
    if (ctx.response.status >= 400) return;
    connectionToast?.remove();
    isReported = false;
  });

  function showConnectionToast(ctx, message) {
    if ((!ctx || isPoll(ctx)) && isReported) return null;
    isReported = true;
    connectionToast = showToast({ message, kind: "fault" });
    return connectionToast;
  }

  function reportSignedOut(ctx = null) {
    const toast = showConnectionToast(ctx, `You have been signed out. ${whereTextIs()}`);
    if (!toast) return;
    const link = document.createElement("a");
    link.className = "button button-small undo";
    link.textContent = "Sign in in a new tab";
    link.target = "_blank";
    link.href = page.dataset.loginUrl;
    find("p", toast).after(link);
  }

  // Only the text of an agent is stored. Other text stays in its field.
  const whereTextIs = () =>
    find("form[data-recover]") ? "Your text is stored in this browser." : "What you typed stays on this page.";

  const ERROR_MESSAGES = {
    401: "You have been signed out. Sign in again.",
    403: "Your role does not allow this. Reload the page to see what you may do.",
    404: `This no longer exists. ${find("form[data-recover]") ? "Copy what you typed before you leave." : "Reload the page."}`,
    413: "This is too large to save. Shorten it and try again.",
    429: "Too many requests. Wait a moment and try again.",
  };
  const SERVER_ERROR_MESSAGE = "The server reported an error. Nothing was changed. Try again.";
  const UNREACHABLE_MESSAGE = "The server cannot be reached.";
  const NOT_UPDATED_MESSAGE = "The server is busy or reported an error. This page is updated as soon as it answers again.";

  // A part of the page whose subject or user is gone requests itself no more. Otherwise the message would come back.
  const gone = new WeakSet();
  listen("htmx:config:request", (event) => {
    const { ctx } = event.detail;
    if (isPoll(ctx) && gone.has(ctx.sourceElement)) event.preventDefault();
  });

  listen("htmx:response:error", (event) => {
    const { ctx } = event.detail;
    const { status } = ctx.response;
    if (isPoll(ctx) && (status === 404 || parseTrigger(ctx.hx?.trigger)["user-changed"])) gone.add(ctx.sourceElement);
    if (messagesOf(ctx).length) return; // the response says what is wrong
    if (isPoll(ctx) && (status === 429 || status >= 500)) return showConnectionToast(ctx, NOT_UPDATED_MESSAGE);
    const message = ERROR_MESSAGES[status] || (status >= 500 && SERVER_ERROR_MESSAGE);
    if (message) showToast({ message: status === 401 ? `${message} ${whereTextIs()}` : message, kind: "fault" });
  });
  listen("htmx:error", (event) => {
    const { ctx } = event.detail;
    if (ctx) showConnectionToast(ctx, `${UNREACHABLE_MESSAGE} ${whereTextIs()}`);
  });

  Object.assign(agentcms, { csrfToken, parseTrigger, reportSignedOut });
})();
