// Calls that wait for a decision: keys of the call in focus, and the focus of its forms.

(() => {
  "use strict";

  const { find, findAll, listen, isPlainShortcut, hasTypedText } = agentcms;
  const OPEN = '[data-approval="open"]';
  const FIELD = "textarea:not([hidden]), select, input:not([type=hidden])";

  let opened = ""; // the id of the card whose form was opened

  // direction: 1 for the next waiting call, -1 for the previous one. The first follows the last.
  function step(direction) {
    const current = document.activeElement?.closest("[data-approval]");
    const cards = findAll("[data-approval]").filter((card) => card.matches(OPEN) || card === current);
    const others = cards.filter((card) => card !== current);
    if (!others.length) return;
    const position = current ? cards.indexOf(current) + direction : direction > 0 ? 0 : -1;
    cards.at(position % cards.length).focus();
  }

  function press(event) {
    const card = event.target.closest?.("[data-approval]");
    const control = card && find(`[data-key="${CSS.escape(event.key)}"]`, card);
    if (!control) return;
    event.preventDefault();
    control.click();
  }

  listen("keydown", (event) => {
    if (event.key === "Escape") return cancel(event);
    if (!isPlainShortcut(event) || !find(OPEN)) return;
    if (event.key === "n") step(1);
    else if (event.key === "p") step(-1);
    else if (["a", "e", "d"].includes(event.key)) press(event);
  });

  // Typed text stays, as in dialogs: only the link itself discards it.
  function cancel(event) {
    const link = find("[data-approval-cancel]", event.target.closest?.("[data-approval]") ?? document.createElement("i"));
    if (link && !hasTypedText(link.closest("form"))) link.click();
  }

  // A decision fetches the answers that wait again. One in whose form somebody types stays until its call is decided.
  listen("htmx:before:request", (event) => {
    const { sourceElement, sourceEvent } = event.detail.ctx;
    if (sourceEvent?.type !== "approval-decided") return;
    const forms = findAll("[data-approval] form", sourceElement);
    if (forms.some((form) => find("[data-approval-cancel]", form) || hasTypedText(form))) event.preventDefault();
  });

  listen("click", (event) => {
    const control = event.target.closest("[data-key=e], [data-key=d]");
    if (control) opened = control.closest("[data-approval]").id;
  });
  addEventListener("htmx:after:swap", () => {
    const card = opened && document.getElementById(opened);
    const field = card && find(FIELD, card);
    if (!field) return; // another part of the page was replaced, such as the bell or a decided call
    opened = "";
    field.focus();
  });
})();
