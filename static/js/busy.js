// Busy controls: a control whose request takes longer than 300 ms shows it, and cannot be pressed again until the end.
//
// It serves the requests of htmx and forms that are sent without it. The admin loads it too, without the other scripts.

(() => {
  "use strict";

  const SHOW_DELAY = 300; // milliseconds
  const GIVE_UP_DELAY = 60_000; // a page that did not change by then stays, as after a download or a cancelled request
  const STAY_DELAY = 500; // the timer runs once the question of the browser is answered
  const CONTROLS = "button, input[type=submit], a, summary";
  const PRESSES = ["click", "submit"];
  const DEFAULT_LABEL = "Working…";
  const LABELS = {
    add: "Adding…",
    apply: "Applying…",
    archive: "Archiving…",
    ask: "Searching…",
    change: "Changing…",
    compare: "Comparing…",
    copy: "Copying…",
    create: "Creating…",
    delete: "Deleting…",
    discard: "Discarding…",
    duplicate: "Duplicating…",
    export: "Exporting…",
    import: "Importing…",
    merge: "Merging…",
    prune: "Pruning…",
    publish: "Publishing…",
    remove: "Removing…",
    restore: "Restoring…",
    retry: "Retrying…",
    review: "Comparing…",
    revoke: "Revoking…",
    "roll back": "Rolling back…",
    run: "Starting…",
    save: "Saving…",
    search: "Searching…",
    "sign in": "Signing in…",
    "sign out": "Signing out…",
    stop: "Stopping…",
    unarchive: "Unarchiving…",
    undo: "Undoing…",
    upload: "Uploading…",
  };

  const busy = new Map(); // control: {timer, restore}, form: {control}
  const labels = new WeakMap(); // control: its label while it is busy

  // --- the live region: it must be in the page before its text changes

  const region = document.createElement("p");
  region.className = "visually-hidden";
  region.setAttribute("role", "status");
  region.dataset.busyStatus = "";
  document.body.append(region);

  // --- begin and end

  // Block the control and its form at once, and show it later: most responses arrive before.
  function begin(control, form) {
    if (form) busy.set(form, { control });
    if (!control || busy.has(control)) return;
    // What is outside of a modal dialog is not read aloud.
    const place = control.closest("dialog[open]") ?? document.body;
    if (region.parentElement !== place) place.append(region);
    labels.set(control, busyLabel(control));
    const state = { restore: null };
    state.timer = setTimeout(() => (state.restore = show(control)), SHOW_DELAY);
    busy.set(control, state);
  }

  function end(control, form) {
    if (form) busy.delete(form);
    const state = control && busy.get(control);
    if (!state) return;
    busy.delete(control);
    clearTimeout(state.timer);
    state.restore?.();
  }

  // Show that the control is busy. Return the function that shows it as before.
  function show(control) {
    const label = labels.get(control);
    const attributes = ["aria-busy", "aria-disabled"].map((name) => [name, control.getAttribute(name)]);
    attributes.forEach(([name]) => control.setAttribute(name, "true"));
    const restoreContent = control.matches("input") ? replaceValue(control, label) : replaceContent(control, label);
    region.textContent = label;
    return () => {
      restoreContent();
      for (const [name, value] of attributes) {
        if (value === null) control.removeAttribute(name);
        else control.setAttribute(name, value);
      }
      region.textContent = "";
    };
  }

  function busyLabel(control) {
    if (control.dataset.busy) return control.dataset.busy;
    const text = control.matches("input") ? control.value : control.getAttribute("aria-label") || control.textContent;
    const verb = Object.keys(LABELS).find((start) => text.trim().toLowerCase().startsWith(start));
    return LABELS[verb] || DEFAULT_LABEL;
  }

  function replaceValue(control, label) {
    const { value } = control;
    control.value = label;
    return () => (control.value = value);
  }

  function replaceContent(control, label) {
    const content = [...control.childNodes];
    const mark = document.createElement("span");
    mark.className = "busy-mark";
    mark.setAttribute("aria-hidden", "true");
    control.style.minWidth = `${control.offsetWidth}px`; // so that the controls beside it do not move
    control.replaceChildren(mark, ...(isIcon(control) ? [] : [label]));
    return () => {
      control.replaceChildren(...content);
      control.style.minWidth = "";
    };
  }

  const isIcon = (control) => control.hasAttribute("aria-label") && !control.textContent.trim();

  // --- presses of what is busy do nothing

  function blockPress(event) {
    const target = event.type === "submit" ? event.target : event.target.closest?.(CONTROLS);
    const state = target && busy.get(target);
    if (!state) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const label = labels.get(state.control || target) || DEFAULT_LABEL;
    region.textContent = region.textContent === label ? `${label} ` : label; // announced again
  }
  PRESSES.forEach((type) => addEventListener(type, blockPress, { capture: true }));

  // --- requests of htmx

  const started = new WeakMap(); // the context of a request: the control and the form

  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (!PRESSES.includes(ctx.sourceEvent?.type)) return;
    const control = ctx.sourceEvent.submitter || ctx.sourceElement.closest(CONTROLS);
    const form = ctx.sourceElement.matches("form") ? ctx.sourceElement : null;
    started.set(ctx, { control, form });
    begin(control, form);
  });
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    const { control, form } = started.get(ctx) || {};
    end(control, form);
  });

  // --- forms without htmx: the next page replaces the busy one

  document.addEventListener("submit", (event) => {
    const form = event.target;
    const control = event.submitter;
    const method = (control?.getAttribute("formmethod") || form.getAttribute("method") || "get").toLowerCase();
    if (event.defaultPrevented || method === "dialog" || form.getAttribute("target") === "_blank") return;
    if (method === "post") begin(control, form);
    addEventListener("beforeunload", (leaving) => leave(leaving, control, form), { once: true });
    setTimeout(() => end(control, form), GIVE_UP_DELAY);
  });

  // A search that only moves to a fragment of this page requests nothing, so it begins when the page is left.
  function leave(leaving, control, form) {
    begin(control, form);
    endIfStayed(leaving, control, form);
  }

  // Another form has unsaved text, and its user stays on the page.
  function endIfStayed(leaving, control, form) {
    setTimeout(() => leaving.defaultPrevented && end(control, form), STAY_DELAY);
  }

  // The browser may show this page again from its cache.
  addEventListener("pageshow", (event) => {
    if (event.persisted) [...busy.keys()].forEach((element) => end(element, element));
  });
})();
