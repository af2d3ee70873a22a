// After htmx has replaced a part of the page, or loaded it again: open new dialogs, and keep the focus near the place where
// it was.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded, openDialog, openerOf } = agentcms;
  const page = document.body;

  let previous = null; // the focused element before the swap: element, id, selector by name
  let dialog = null; // the dialog that contained it
  let replacementId = ""; // the id of the element that takes the place of the focused link or button

  listen("htmx:before:swap", (event) => {
    const element = document.activeElement;
    rememberPlaces(event.detail.ctx, element);
    replacementId = element?.dataset.opens;
    dialog = element?.closest("#dialogs > dialog");
    // A dialog that replaces another one returns the focus to the opener of the first.
    if (dialog) previous = openerOf(dialog);
    else previous = element && element !== page ? { element, id: element.id, selector: selectorByName(element) } : null;
  });

  listen("htmx:after:swap", (event) => {
    focusIfLost(replacementId && document.getElementById(replacementId));
    restorePlaces();
    const newDialogs = findAll("#dialogs > dialog:not([open])");
    newDialogs.forEach((newDialog) => openDialog(newDialog, previous?.element));
    if (newDialogs.length) return;
    if (previous?.element && !previous.element.isConnected) focusIfLost(findSuccessor(event.target));
    if (dialog?.isConnected && dialog.open) focusIfLost(dialog);
  });

  // Buttons of one name differ in their values, and do different things.
  function selectorByName(element) {
    const name = element.getAttribute("name");
    if (!name) return "";
    return `[name="${CSS.escape(name)}"]${element.matches("button") ? `[value="${CSS.escape(element.value)}"]` : ""}`;
  }

  function focusIfLost(element) {
    // When the focused element is removed, the browser moves the focus to the body.
    if (!element || document.activeElement !== page) return;
    if (!element.matches("a[href], button, input, select, textarea, summary, [tabindex]")) element.tabIndex = -1;
    element.focus({ preventScroll: true });
  }

  // The element with the same id or name, else the one marked for this purpose, else the new part of the page.
  // A form that is folded after it was saved cannot have the focus.
  function findSuccessor(target) {
    const root = target instanceof Element ? target : document;
    const sameField = [
      previous.id && document.getElementById(previous.id),
      previous.selector && find(previous.selector, root),
    ].find((element) => element && element.checkVisibility());
    return (
      sameField ||
      find("[data-focus]", root) ||
      (root instanceof Element && root !== page ? root : find("#main"))
    );
  }

  // --- a part of the page that requests itself again while work goes on: what is open stays open, and the focus stays

  const FOCUSABLE = "a[href], button, summary, input:not([type=hidden]), select, textarea";
  let opened = []; // the places of open details
  let focused = null; // the place of the focus

  function rememberPlaces(ctx, element) {
    const isPoll = ctx?.sourceEvent?.type === "every" && ctx.target;
    opened = isPoll ? findAll("details[open]", ctx.target).map((details) => placeOf(details, "details")) : [];
    focused = isPoll && ctx.target.contains(element) && element.matches(FOCUSABLE) ? placeOf(element, FOCUSABLE) : null;
  }

  function restorePlaces() {
    opened.map(elementAt).forEach((details) => details && (details.open = true));
    focusIfLost(focused && elementAt(focused));
    [opened, focused] = [[], null];
  }

  // A place is a position among the elements of a kind in the nearest element with an id, such as a row.
  function placeOf(element, selector) {
    const root = element.parentElement.closest("[id]");
    return { id: root.id, selector, position: findAll(selector, root).indexOf(element) };
  }

  function elementAt({ id, selector, position }) {
    const root = document.getElementById(id);
    return root && findAll(selector, root)[position];
  }

  // --- the bar of actions at the bottom of phones: the end of the page and the focus stay above its rows

  const observer = new ResizeObserver((entries) => entries.forEach(({ target }) => makeRoom(target)));
  onAdded(".titlebar .actions", (bar) => observer.observe(bar));

  function makeRoom(bar) {
    const height = getComputedStyle(bar).position === "fixed" ? `${bar.offsetHeight}px` : "";
    if (bar.isConnected) document.documentElement.style.setProperty("--action-bar-height", height);
  }

  // --- a tab in a row that is wider than the screen, of which browsers leave a part out of sight

  listen("focusin", ({ target }) => {
    if (target.closest(".tabs")) target.scrollIntoView({ block: "nearest", inline: "nearest" });
  });

  // --- an action after which the server loads the same page again

  const STORAGE_KEY = "agentcms:focus";

  listen("htmx:after:request", ({ detail: { ctx } }) => {
    const { redirect, refresh } = ctx.hx ?? {};
    const target = redirect ? new URL(redirect, location.href).pathname : refresh === "true" && location.pathname;
    if (target !== location.pathname) return;
    const dialogOfRequest = ctx.sourceElement.closest("#dialogs > dialog");
    const opener = dialogOfRequest ? openerOf(dialogOfRequest)?.element : document.activeElement;
    storeFocus([opener?.id, opener?.dataset?.opens].filter(Boolean));
  });

  function storeFocus(ids) {
    try {
      sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ path: location.pathname, ids }));
    } catch {
      // Storage is blocked: the page starts at its beginning.
    }
  }

  function takeFocus() {
    try {
      const stored = JSON.parse(sessionStorage.getItem(STORAGE_KEY));
      sessionStorage.removeItem(STORAGE_KEY);
      return stored?.path === location.pathname ? stored.ids : null;
    } catch {
      return null;
    }
  }

  const ids = takeFocus();
  if (ids) {
    const element = ids.map((id) => document.getElementById(id)).find(Boolean) ?? find("#main");
    focusIfLost(element);
    element.scrollIntoView({ block: "nearest" });
  }
})();
