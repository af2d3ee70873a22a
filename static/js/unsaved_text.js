// Unsaved text of the editor in localStorage, by user, agent and the version that the text is based on.
//
// A text is {at, page, base, head, values}: the time, the page that stored it, the number and the id of that version, and
// the values of the form as [name, value, checked] or [name, value].

(() => {
  "use strict";

  const { find, findAll, listen } = agentcms;
  const PREFIX = "agentcms:unsaved:";
  const SUBMITTED_KEY = `${PREFIX}sent`;
  const PAGE_ID = performance.timeOrigin; // differs in each tab and after each load
  const user = () => document.body.dataset.user || "";

  // Any access can throw: in private windows, on a full disk, or where storage is blocked. Text is then not recovered.
  function attempt(access, fallback = null) {
    try {
      return access();
    } catch {
      return fallback;
    }
  }

  const keyOf = (form) => `${PREFIX}${user()}:${form.dataset.agent || ""}:${form.dataset.base || ""}`;
  const keyOfEarlier = (key, page) => `${key}:${page}`;
  const writeText = (key, text) => attempt(() => localStorage.setItem(key, JSON.stringify(text)));
  const removeText = (key) => attempt(() => localStorage.removeItem(key));

  // Return the text of a key, or null.
  function readText(key) {
    const text = attempt(() => JSON.parse(localStorage.getItem(key)));
    return Array.isArray(text?.values) ? text : null;
  }

  const keysWithPrefix = (prefix) => attempt(() => Object.keys(localStorage).filter((key) => key.startsWith(prefix)), []);
  const keysOfAgent = (agent) => keysWithPrefix(`${PREFIX}${user()}:${agent}:`);

  // Return the newest text of an agent, or null.
  function findNewestText(agent) {
    const texts = keysOfAgent(agent).map(readText).filter(Boolean);
    return texts.sort((a, b) => (a.at < b.at ? 1 : -1))[0] || null;
  }

  // Add the values of a form to a body as the browser would send them: without boxes that are not checked.
  function encodeValues(values, body = new URLSearchParams()) {
    for (const [name, value, checked] of values) {
      if (checked !== false) [value].flat().forEach((single) => body.append(name, single));
    }
    return body;
  }

  // --- a form that was submitted without htmx: the next page shows if it was saved

  const markSubmitted = (form) => attempt(() => sessionStorage.setItem(SUBMITTED_KEY, keyOf(form)));

  // A page of an error or the sign-in page has no toast of success, and the form itself would be shown again.
  function removeSubmittedText() {
    const key = attempt(() => sessionStorage.getItem(SUBMITTED_KEY));
    if (!key || !find("[data-toast]:not(.toast-fault)")) return;
    if (!findAll("form[data-recover]").some((form) => keyOf(form) === key)) removeText(key);
    attempt(() => sessionStorage.setItem(SUBMITTED_KEY, ""));
  }
  removeSubmittedText();

  // --- signing out removes all text of this user. A page with a changed form asks first.

  listen("submit", (event) => {
    if (event.defaultPrevented || !event.target.matches("[data-sign-out]")) return;
    keysWithPrefix(`${PREFIX}${user()}:`).forEach(removeText);
  });

  Object.assign(agentcms, { PAGE_ID, keyOf, keyOfEarlier, keysOfAgent, readText, writeText, removeText });
  Object.assign(agentcms, { findNewestText, encodeValues, markSubmitted });
})();
