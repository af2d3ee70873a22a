// The playground: requests in order, saved inputs, and unsaved text of the editor.

(() => {
  "use strict";

  const { find, findAll, listen, findNewestText, encodeValues } = agentcms;
  const VARIABLE_PREFIX = "variable-";

  // --- requests: one at a time, with the columns and runs that the page shows when a request is sent

  let isRunning = false;

  listen("htmx:config:request", (event) => {
    if (!event.detail.ctx.sourceElement.matches("[data-try]")) return;
    if (isRunning) event.preventDefault(); // a key that repeats would run the message again
    isRunning = true;
  });
  listen("htmx:finally:request", ({ detail }) => {
    if (!detail.ctx.sourceElement.matches("[data-try]")) return;
    isRunning = false;
    const error = detail.ctx.response?.status === 422 && find("[data-try] [data-error-of]:not([hidden])");
    if (error) document.getElementById(error.dataset.errorOf)?.focus();
  });

  // htmx collected the values when the request was queued. The response before it may have changed the columns.
  listen("htmx:before:request", ({ detail: { ctx } }) => {
    const { form, body } = ctx.request;
    if (!form?.matches("[data-try]") || !(body instanceof URLSearchParams)) return;
    const current = new FormData(form);
    if (ctx.sourceElement === form) replaceValues(body, current, "column");
    if (body.getAll("column").length === current.getAll("run").length) {
      replaceValues(body, current, "run");
      replaceValues(body, current, "thread");
    }
    if (ctx.target?.id) ctx.target = document.getElementById(ctx.target.id) ?? ctx.target;
  });

  function replaceValues(body, current, name) {
    body.delete(name);
    current.getAll(name).forEach((value) => body.append(name, value));
  }

  // --- the message

  listen("click", (event) => {
    const link = event.target.closest("[data-fill]");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    link.closest("details")?.removeAttribute("open");
    const texts = JSON.parse(link.dataset.fillVariables || "{}");
    findAll("#variables :is(textarea, select)").forEach((field) => {
      field.value = texts[decodeURIComponent(field.name.replace(VARIABLE_PREFIX, ""))] ?? "";
    });
    setMessage(link.dataset.fill);
  });

  // In a conversation, the field is cleared for the next message.
  listen("runs-started", ({ detail }) => {
    if (detail?.clear) setMessage("");
  });

  function setMessage(text) {
    const field = find("#id_message");
    field.value = text;
    field.focus();
  }

  // Enter in the name of a saved input would submit the form, which runs the message.
  listen("keydown", (event) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || !event.target.matches?.("[data-input-name]")) return;
    event.preventDefault();
    find("[data-save-input]").click();
  });

  // --- unsaved text of the editor, which is stored in this browser

  // Copy the text into the form. Return true if it changed.
  function updateUnsavedText() {
    const form = find("[data-try]");
    if (!form) return false;
    const text = findNewestText(form.dataset.agent);
    const field = find("[data-unsaved]", form);
    const content = text ? encodeValues(text.values).toString() : "";
    const changed = field.value !== content;
    field.value = content;
    find("[data-unsaved-base]", form).value = text?.base || "";
    findAll("[data-unsaved-choice]").forEach((option) => (option.disabled = !text));
    const editorLink = find("[data-back-to-editor]");
    if (editorLink) editorLink.hash = text ? "#unsaved" : "";
    return changed;
  }

  // The server renders the columns of unsaved text from the text that the request contains.
  function reloadUnsavedColumns() {
    const select = findAll("#tried select[name=column]").find((candidate) => candidate.value === "unsaved");
    select?.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // --- words that differ: the server marks them once all answers are finished

  listen("htmx:after:swap", () => {
    const tried = find("#tried[data-marks-pending]");
    if (!tried || find("[aria-busy]", tried)) return;
    tried.removeAttribute("data-marks-pending");
    find("[data-refresh]").click();
  });

  addEventListener("storage", () => updateUnsavedText() && reloadUnsavedColumns());
  listen("htmx:after:swap", updateUnsavedText);
  // Not at once: htmx sets up its elements in a timer of its own.
  if (updateUnsavedText()) setTimeout(reloadUnsavedColumns);
})();
