// Toasts: short messages that disappear by themselves. Errors stay until they are dismissed.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded } = agentcms;
  const region = find("#toasts");
  const DISPLAY_SECONDS = 8;
  const DISPLAY_SECONDS_WITH_UNDO = 20;

  // undo: the URL to which the Undo button posts. kind: "fault" for an error. Return the toast.
  function showToast({ message, undo = "", kind = "" }) {
    const template = find(kind === "fault" ? "#toast-fault-template" : "#toast-template");
    if (!region || !template || !message) return null;
    moveRegion();
    const toast = template.content.firstElementChild.cloneNode(true);
    find("p", toast).textContent = message;
    setUndo(find("form", toast), undo);
    // One of each kind: a newer one makes the older one obsolete.
    findAll(".toast", region).forEach((older) => isError(older) === isError(toast) && closeToast(older));
    region.append(toast);
    window.htmx?.process(toast);
    startNewTimers();
    return toast;
  }

  function setUndo(form, undo) {
    // Only a path of this server: the URL comes from a response header, and must not post a CSRF token elsewhere.
    if (undo.startsWith("/") && !undo.startsWith("//")) {
      form.setAttribute("action", undo);
      form.setAttribute("hx-post", undo);
    } else {
      form?.remove();
    }
  }

  // Everything outside of a modal dialog is inert: not read aloud, and a press of a button there closes the dialog.
  function moveRegion() {
    const place = findAll("dialog[open]").at(-1) ?? document.body;
    if (region.parentElement !== place) place.append(region);
  }

  // A dialog that is closed or replaced leaves the region in the page.
  listen("close", (event) => event.target.contains(region) && document.body.append(region), { capture: true });
  listen("htmx:after:swap", () => region.isConnected || document.body.append(region));

  const isError = (toast) => toast.matches(".toast-fault");

  function startTimer(toast) {
    if (isError(toast)) return;
    const seconds = find("form", toast) ? DISPLAY_SECONDS_WITH_UNDO : DISPLAY_SECONDS;
    let timer;
    const pause = () => clearTimeout(timer);
    const restart = () => {
      clearTimeout(timer);
      timer = setTimeout(() => closeToast(toast), seconds * 1000);
    };
    toast.addEventListener("pointerenter", pause);
    toast.addEventListener("focusin", pause);
    // Not both in both: after a touch, the toast stays in the state `:hover`.
    toast.addEventListener("pointerleave", () => toast.matches(":focus-within") || restart());
    toast.addEventListener("focusout", () => toast.matches(":hover") || restart());
    restart();
  }

  function closeToast(toast) {
    if (toast.contains(document.activeElement)) find("#main")?.focus({ preventScroll: true });
    toast.remove();
  }

  listen("click", (event) => {
    const button = event.target.closest("[data-dismiss]");
    if (button) closeToast(button.closest("[data-toast]"));
  });
  listen("submit", (event) => {
    const toast = event.target.closest("[data-toast]");
    // Not at once: the browser does not submit a form that has been removed.
    if (toast) setTimeout(() => closeToast(toast), 300);
  });

  const startNewTimers = onAdded("[data-toast]", startTimer);

  Object.assign(agentcms, { showToast });
})();
