// What Try it does beyond asking and listening: one request after the other, saved inputs, and the text that the editor
// keeps in this browser.

(() => {
  "use strict";

  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const on = (event, handler, options) => document.addEventListener(event, handler, options);

  // --- asking: one after the other, each from what the page shows when its turn comes

  let asking = false;
  on("htmx:config:request", (event) => {
    if (!event.detail.ctx.sourceElement.matches("[data-try]")) return;
    if (asking) event.preventDefault(); // once is enough, however often the key is pressed
    asking = true;
  });
  on("htmx:finally:request", ({ detail }) => {
    if (detail.ctx.sourceElement.matches("[data-try]")) asking = false;
  });
  on("htmx:before:request", ({ detail: { ctx } }) => {
    const { form, body } = ctx.request;
    if (!form?.matches("[data-try]") || !(body instanceof URLSearchParams)) return;
    const now = new FormData(form);
    const isRun = ctx.sourceElement === form;
    if (isRun) renew(body, now, "column");
    if (body.getAll("column").length === now.getAll("run").length) renew(body, now, "run");
    if (ctx.target?.id) ctx.target = document.getElementById(ctx.target.id) ?? ctx.target;
  });

  function renew(body, now, name) {
    body.delete(name);
    now.getAll(name).forEach((value) => body.append(name, value));
  }

  // --- the message: a saved one, and an empty field where a conversation goes on

  on("click", (event) => {
    const link = event.target.closest("[data-fill]");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const field = $("#id_message");
    field.value = link.dataset.fill;
    link.closest("details")?.removeAttribute("open");
    field.focus();
  });
  on("runs-started", ({ detail }) => {
    const field = $("#id_message");
    if (!detail?.clear) return;
    field.value = "";
    field.focus();
  });
  // Enter in the name of an input saves it instead of running.
  on("keydown", (event) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || !event.target.matches?.("[data-input-name]")) return;
    event.preventDefault();
    $("[data-save-input]").click();
  });

  // --- the text that the editor keeps in this browser

  function keptText(form) {
    const start = `agentcms:unsaved:${document.body.dataset.user}:${form.dataset.agent}:`;
    try {
      const keys = Object.keys(localStorage).filter((key) => key.startsWith(start));
      const texts = keys.map((key) => JSON.parse(localStorage.getItem(key))).filter((text) => Array.isArray(text?.values));
      return texts.sort((a, b) => (a.at < b.at ? 1 : -1))[0] || null;
    } catch {
      return null;
    }
  }

  // As a browser would send the form: of boxes, those that are ticked.
  function asForm(values) {
    const sent = new URLSearchParams();
    for (const [name, value, checked] of values) {
      if (checked !== false) [value].flat().forEach((each) => sent.append(name, each));
    }
    return sent.toString();
  }

  function carryText() {
    const form = $("[data-try]");
    if (!form) return false;
    const kept = keptText(form);
    const [field, base] = [$("[data-unsaved]", form), $("[data-unsaved-base]", form)];
    const sent = kept ? asForm(kept.values) : "";
    const changed = field.value !== sent;
    field.value = sent;
    base.value = kept?.base || "";
    $$("[data-unsaved-choice]").forEach((option) => (option.disabled = !kept));
    const back = $("[data-back-to-editor]");
    if (back) back.hash = kept ? "#unsaved" : "";
    return changed;
  }

  // The server cannot know the text before it is sent: ask again for the columns that show it.
  function askAgain() {
    const select = $$("#tried select[name=column]").find((each) => each.value === "unsaved");
    select?.dispatchEvent(new Event("change", { bubbles: true }));
  }
  addEventListener("storage", () => carryText() && askAgain());

  on("htmx:after:swap", carryText);
  if (carryText()) setTimeout(askAgain); // htmx, loaded before this, begins with a timer of its own
})();
