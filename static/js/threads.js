// The page of a thread: messages, signals and runs appear as they come, and what is remembered beside them changes. The
// server renders them, and this script adds what is new, so that nothing that somebody reads or has opened is replaced.

(() => {
  "use strict";

  const { find, findAll, listen, showToast, reportSignedOut } = agentcms;
  const POLL_INTERVAL = 2000;
  const GONE_MESSAGE = "This conversation no longer exists, or you no longer have access to it.";

  const page = find("#thread-messages[data-live]");
  if (!page) return;

  let isFetching = false;
  let timer = 0;

  function schedule(delay = POLL_INTERVAL) {
    clearTimeout(timer);
    timer = setTimeout(update, delay);
  }

  async function update() {
    if (document.hidden || isFetching) return;
    isFetching = true;
    try {
      const separator = page.dataset.live.includes("?") ? "&" : "?";
      const url = `${page.dataset.live}${separator}state=${encodeURIComponent(page.dataset.state)}`;
      const response = await fetch(url, { redirect: "manual" });
      // A redirect leads to the sign-in page. After signing in, the reader comes back to this tab, which goes on.
      if (response.type === "opaqueredirect") return reportSignedOut();
      if (response.status === 404) return showToast({ message: GONE_MESSAGE, kind: "fault" });
      if (response.status === 200) merge(await response.text());
      schedule();
    } catch {
      schedule(); // the server cannot be reached
    } finally {
      isFetching = false;
    }
  }

  function merge(text) {
    const received = new DOMParser().parseFromString(text, "text/html");
    const fresh = received.getElementById("thread-messages");
    if (!fresh) return;
    replaceMemory(received.getElementById("thread-memory"));
    page.dataset.state = fresh.dataset.state;
    const pages = find(".pagination", page);
    if (!pages.contains(document.activeElement)) pages.replaceWith(find(".pagination", fresh));
    const added = [...mergeChildren("[data-entries]", fresh, false), ...mergeChildren("[data-active]", fresh, true)];
    added.forEach((element) => htmx.process(element));
    dispatchEvent(new CustomEvent("htmx:after:swap", { detail: {} })); // sets up times, and the streams of new answers
    if (!added.length) return;
    findAll(".empty", page).forEach((element) => element.remove());
    find("#run-announcement").textContent = `New: ${find("h2", added.at(-1)).textContent}.`;
  }

  // Replace what is remembered, unless the focus is there. What somebody has opened stays open.
  function replaceMemory(fresh) {
    const memory = find("#thread-memory");
    if (memory.contains(document.activeElement) || memory.innerHTML === fresh.innerHTML) return;
    findAll("details[open]", memory).forEach(({ id }) => fresh.querySelector(`#${id}`)?.setAttribute("open", ""));
    memory.replaceWith(fresh);
  }

  // Add and replace the children that differ. Return those that were added or replaced.
  function mergeChildren(selector, fresh, removes) {
    const list = find(selector, page);
    const children = [...find(selector, fresh).children];
    if (removes) {
      const ids = new Set(children.map((child) => child.id));
      [...list.children].forEach((child) => ids.has(child.id) || child.remove());
    }
    return children.filter((child) => {
      const current = document.getElementById(child.id);
      if (!current) list.append(child);
      else if (!removes && current.dataset.version !== child.dataset.version) current.replaceWith(child);
      else return false;
      return true;
    });
  }

  listen("visibilitychange", () => document.hidden || schedule(0));
  listen("run-finished", () => schedule(0));
  addEventListener("htmx:after:swap", () => {
    const form = find("#send-form[data-sent]");
    if (!form) return;
    form.removeAttribute("data-sent");
    find("textarea", form).focus();
    schedule(0);
  });
  schedule();
})();
