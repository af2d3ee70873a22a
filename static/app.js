// What the pages do beyond HTML and htmx. Every part looks for its own data attributes, by delegation, so that it works
// for what htmx puts into the page later. Nothing here is needed to create, edit, save, compare, activate or restore.

(() => {
  "use strict";

  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const on = (event, handler, options) => document.addEventListener(event, handler, options);
  const page = document.body;
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

  // --- theme: a cookie, so that the server paints the first frame right

  on("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
  });

  // --- dialogs: opened by commandfor, or by arriving in #dialogs; the focus goes back where it came from

  const openers = new WeakMap();

  function openDialog(dialog, opener = document.activeElement) {
    if (!dialog || dialog.open) return;
    openers.set(dialog, { element: opener, id: opener?.id });
    $$("details.menu[open]").forEach((menu) => menu.removeAttribute("open"));
    dialog.showModal();
  }

  on("click", (event) => {
    const button = event.target.closest("[commandfor][command='show-modal']");
    if (!button) return;
    button.closest("details.menu")?.removeAttribute("open");
    const dialog = $(`#${CSS.escape(button.getAttribute("commandfor"))}`);
    // Browsers that know the attribute open it by themselves, with scripts or without.
    if ("commandForElement" in button) openers.set(dialog, { element: button, id: button.id });
    else openDialog(dialog, button);
  });

  // A click on the ground behind a dialog closes it, unless it holds something typed.
  on("pointerdown", (event) => {
    if (event.target.matches?.("dialog[open]") && !isInside(event, event.target) && !isDirtyInside(event.target)) {
      event.target.close();
    }
  });

  function isInside(event, element) {
    const box = element.getBoundingClientRect();
    return event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
  }

  function isDirtyInside(dialog) {
    return $$("input, textarea", dialog).some((field) => field.type !== "hidden" && field.value !== field.defaultValue);
  }

  on(
    "close",
    (event) => {
      const dialog = event.target;
      if (!(dialog instanceof HTMLDialogElement)) return;
      const opener = openers.get(dialog);
      const element = opener?.element?.isConnected ? opener.element : opener?.id && document.getElementById(opener.id);
      // An opener inside a closed menu cannot take the focus; its summary can.
      const visible = element?.checkVisibility?.() ? element : element?.closest("details.menu")?.querySelector("summary");
      visible?.focus();
      if (dialog.closest("#dialogs")) dialog.remove();
    },
    true,
  );

  // Menus close on a click elsewhere and on Esc.
  on("click", (event) => {
    $$("details.menu[open]").forEach((menu) => menu.contains(event.target) || menu.removeAttribute("open"));
  });

  // --- toasts

  const SECONDS = 8;
  const SECONDS_TO_UNDO = 20;

  function showToast({ message, undo = "", kind = "" }) {
    const region = $("#toasts");
    const template = $(kind === "fault" ? "#toast-fault-template" : "#toast-template");
    if (!region || !template || !message) return;
    const toast = template.content.firstElementChild.cloneNode(true);
    $("p", toast).textContent = message;
    const form = $("form", toast);
    // An address of our own only: what a header carries is not trusted to post elsewhere.
    if (undo.startsWith("/") && !undo.startsWith("//")) {
      form.setAttribute("action", undo);
      form.setAttribute("hx-post", undo);
    } else {
      form?.remove();
    }
    while (region.children.length >= 3) region.firstElementChild.remove();
    region.append(toast);
    window.htmx?.process(toast);
    liftToasts();
    startToast(toast);
  }

  // A modal dialog covers everything else, unless the region is lifted to the top layer above it.
  function liftToasts() {
    const region = $("#toasts");
    if (!region.showPopover || !$("dialog[open]")) return;
    region.popover = "manual";
    if (region.matches(":popover-open")) region.hidePopover();
    region.showPopover();
  }

  function startToast(toast) {
    if (toast.matches(".toast-fault")) return; // bad news stays until it is read
    const seconds = $("form", toast) ? SECONDS_TO_UNDO : SECONDS;
    let timer = setTimeout(() => closeToast(toast), seconds * 1000);
    const hold = () => clearTimeout(timer);
    const release = () => {
      clearTimeout(timer);
      timer = setTimeout(() => closeToast(toast), seconds * 1000);
    };
    toast.addEventListener("pointerenter", hold);
    toast.addEventListener("focusin", hold);
    toast.addEventListener("pointerleave", release);
    toast.addEventListener("focusout", release);
  }

  function closeToast(toast) {
    if (toast.contains(document.activeElement)) $("#main")?.focus({ preventScroll: true });
    toast.remove();
  }

  on("click", (event) => {
    const button = event.target.closest("[data-dismiss]");
    if (button) closeToast(button.closest("[data-toast]"));
  });
  on("submit", (event) => {
    const toast = event.target.closest("[data-toast]");
    if (toast) setTimeout(() => closeToast(toast), 300);
  });

  // --- the CSRF token of now: signing in again in another tab has changed the one that this page was given

  const freshToken = () => document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1];
  on(
    "submit",
    (event) => {
      const field = event.target.elements.namedItem("csrfmiddlewaretoken");
      if (field && freshToken()) field.value = freshToken();
    },
    true,
  );
  on("htmx:config:request", (event) => {
    const { headers } = event.detail.ctx.request;
    if (headers["X-CSRFToken"] && freshToken()) headers["X-CSRFToken"] = freshToken();
  });

  // A question that is answered with nothing more to show is done: its dialog closes, and the focus goes back.
  on("htmx:finally:request", (event) => {
    const { ctx } = event.detail;
    if (ctx.response?.status === 204) ctx.sourceElement.closest("#dialogs > dialog")?.close();
  });

  // --- answers: any event of HX-Trigger that carries a message is told

  on("htmx:finally:request", (event) => {
    const trigger = event.detail.ctx?.hx?.trigger;
    if (!trigger?.startsWith("{")) return;
    let told;
    try {
      told = Object.values(JSON.parse(trigger));
    } catch {
      return;
    }
    told.forEach((detail) => detail?.message && showToast(detail));
  });

  // Another tab of this browser that shows the same agent hears of it, and fetches anew what it shows of the history.
  const tabs = new BroadcastChannel("agentcms");
  const agentOf = (path) => path.match(/^\/agents\/[^/?]+/)?.[0];
  on("htmx:finally:request", (event) => {
    const { ctx } = event.detail;
    const agent = /"(agent-saved|history-changed)"/.test(ctx.hx?.trigger || "") && agentOf(ctx.request.action);
    if (agent) tabs.postMessage(agent);
  });
  tabs.addEventListener("message", ({ data }) => {
    if (data === agentOf(location.pathname)) page.dispatchEvent(new Event("changed-elsewhere"));
  });

  // An expired session answers with the sign-in page: it must not land inside a fragment.
  on("htmx:before:response", (event) => {
    const { ctx } = event.detail;
    const login = page.dataset.loginUrl;
    if (login && ctx.response.raw.redirected && new URL(ctx.response.raw.url).pathname === login) {
      event.preventDefault();
      rememberAll();
      showSignIn();
    }
  });

  function showSignIn() {
    showToast({ message: "You have been signed out. Your text is kept in this browser.", kind: "fault" });
    const link = document.createElement("a");
    link.className = "button button-small undo";
    link.textContent = "Sign in in a new tab";
    link.target = "_blank";
    link.href = page.dataset.loginUrl;
    $("#toasts").lastElementChild?.querySelector("p")?.after(link);
  }

  const sentences = {
    401: "You have been signed out. Sign in again; your text is kept in this browser.",
    403: "Your role does not allow that, or this page is too old. Reload it and try again.",
    404: "That is no longer there. Reload the page.",
    413: "That is too large to save. Make it smaller and try again.",
    429: "Too many requests at once. Wait a moment and try again.",
  };
  on("htmx:response:error", (event) => {
    const { status } = event.detail.ctx.response;
    const sentence = sentences[status] || (status >= 500 && "The server could not do that. Nothing was changed; try again.");
    if (sentence) showToast({ message: sentence, kind: "fault" });
  });
  on("htmx:error", (event) => {
    if (event.detail.ctx) showToast({ message: "The server cannot be reached. Your text is kept in this browser.", kind: "fault" });
  });

  // What arrives in #dialogs opens; and the focus never falls to the top of the page after a swap.
  let focused = null;
  let asked = null; // the dialog in which something was swapped
  let opens = ""; // the id of what the focused link or button opens in its own place
  on("htmx:before:swap", () => {
    const element = document.activeElement;
    opens = element?.dataset.opens;
    const dialog = element?.closest("#dialogs > dialog");
    asked = dialog;
    // A dialog that takes the place of another gives the focus back to what opened the first.
    if (dialog) focused = openers.get(dialog);
    else focused = element && element !== page ? { element, id: element.id, name: element.getAttribute("name") } : null;
  });
  on("htmx:after:swap", (event) => {
    const opened = opens && document.getElementById(opens);
    if (opened && document.activeElement === page) {
      opened.tabIndex = -1;
      opened.focus({ preventScroll: true });
    }
    const arrived = $$("#dialogs > dialog:not([open])");
    arrived.forEach((dialog) => openDialog(dialog, focused?.element));
    if (!arrived.length && focused && !focused.element.isConnected && document.activeElement === page) {
      restoreFocus(event.target);
    }
    if (!arrived.length && asked?.isConnected && asked.open && document.activeElement === page) {
      asked.tabIndex = -1;
      asked.focus({ preventScroll: true });
    }
    start(document);
  });

  function restoreFocus(target) {
    const root = target instanceof Element ? target : document;
    const same =
      (focused.id && document.getElementById(focused.id)) ||
      (focused.name && $(`[name="${CSS.escape(focused.name)}"]`, root)) ||
      $("[data-focus]", root);
    if (same) return same.focus({ preventScroll: true });
    const place = root instanceof Element && root !== page ? root : $("#main");
    if (!place.hasAttribute("tabindex")) place.tabIndex = -1;
    place.focus({ preventScroll: true });
  }

  // --- keys

  function isTyping(target) {
    return target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable='true']");
  }

  on("keydown", (event) => {
    const modifier = isMac ? event.metaKey : event.ctrlKey;
    if (modifier && !event.altKey && event.key.toLowerCase() === "s") return save(event);
    if (modifier && event.key === "Enter") return press(event, "[data-run]");
    if (event.key === "Escape") return closeMenu(event);
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || $("dialog[open]")) return;
    if (event.key === "?") {
      event.preventDefault();
      openDialog($("#keys"));
    } else if (event.key === "/") {
      const field = $("main [data-search]") || $("[data-search]");
      if (!field) return;
      event.preventDefault();
      field.focus();
      field.select();
    } else if (event.key === "n" || event.key === "p") {
      stepThroughChanges(event.key === "n" ? 1 : -1);
    }
  });

  function save(event) {
    const form = document.activeElement?.closest("form[data-save]") || $("dialog[open] form[data-save]") || $("form[data-save]");
    if (!form) return;
    event.preventDefault();
    const button = [...form.elements].find((element) => element.matches("[data-save-default]"));
    if (!button?.disabled) form.requestSubmit(button);
  }

  function press(event, selector) {
    const button = $(selector);
    if (!button || button.disabled) return;
    event.preventDefault();
    button.click();
  }

  function closeMenu(event) {
    const menu = event.target.closest?.("details.menu[open]") || $("details.menu[open]");
    if (!menu) return;
    menu.removeAttribute("open");
    $("summary", menu).focus();
  }

  // --- stepping through a comparison: "3 of 9"

  function stepThroughChanges(direction) {
    const changes = $$("[data-change]").filter((change) => change.checkVisibility());
    if (!changes.length) return;
    const now = changes.findIndex((change) => change.hasAttribute("data-current"));
    const next = now < 0 ? (direction > 0 ? 0 : changes.length - 1) : (now + direction + changes.length) % changes.length;
    changes[now]?.removeAttribute("data-current");
    changes[next].setAttribute("data-current", "");
    changes[next].scrollIntoView({ block: "center" });
    changes[next].focus({ preventScroll: true });
    $$("[data-change-position]").forEach((place) => (place.textContent = `${next + 1} of ${changes.length}`));
  }

  on("click", (event) => {
    const button = event.target.closest("[data-step]");
    if (button) stepThroughChanges(Number(button.dataset.step));
  });

  // --- forms: what was typed is guarded, remembered and offered again

  const PREFIX = "agentcms:unsaved:";
  const baselines = new WeakMap();
  const leaving = new WeakSet();

  function values(form) {
    const found = [];
    for (const field of form.elements) {
      if (!field.name || field.disabled || field.name === "csrfmiddlewaretoken" || field.matches("[data-not-saved], [data-of-save]")) continue;
      if (["hidden", "password", "file", "submit", "button", "reset"].includes(field.type)) continue;
      if (["checkbox", "radio"].includes(field.type)) found.push([field.name, field.value, field.checked]);
      else if (field instanceof HTMLSelectElement && field.multiple)
        found.push([field.name, [...field.selectedOptions].map((option) => option.value)]);
      else found.push([field.name, field.value]);
    }
    return found;
  }

  const snapshot = (form) => JSON.stringify(values(form));
  const isDirty = (form) => baselines.has(form) && !leaving.has(form) && baselines.get(form) !== snapshot(form);

  function storageKey(form) {
    const { user, agent, base } = form.dataset;
    return `${PREFIX}${user || page.dataset.user || ""}:${agent || ""}:${base || ""}`;
  }

  // Reading and writing may both throw: private windows, full disks, blocked storage.
  const store = {
    read(key) {
      try {
        return JSON.parse(localStorage.getItem(key));
      } catch {
        return null;
      }
    },
    write(key, value) {
      try {
        localStorage.setItem(key, JSON.stringify(value));
        return true;
      } catch {
        return false;
      }
    },
    remove(key) {
      try {
        localStorage.removeItem(key);
      } catch {
        // Nothing was kept, so nothing is left behind.
      }
    },
    mark(key) {
      try {
        sessionStorage.setItem(`${PREFIX}sent`, key);
      } catch {
        // Then the text is offered once more than needed.
      }
    },
    marked() {
      try {
        return sessionStorage.getItem(`${PREFIX}sent`);
      } catch {
        return null;
      }
    },
    keys() {
      try {
        return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
      } catch {
        return [];
      }
    },
  };

  function remember(form) {
    if (!baselines.has(form)) return;
    const { base } = form.dataset;
    const head = form.elements.namedItem("head")?.value;
    if (isDirty(form)) store.write(storageKey(form), { at: new Date().toISOString(), base, head, values: values(form) });
    else if (!leaving.has(form)) forget(form);
    showDirt(form);
  }

  const rememberAll = () => $$("form[data-recover]").forEach(remember);
  const forget = (form) => store.remove(storageKey(form));

  function showDirt(form) {
    const dirty = isDirty(form);
    form.toggleAttribute("data-dirty", dirty);
    $$(`[data-dirty-of="${CSS.escape(form.id)}"]`).forEach((note) => (note.hidden = !dirty));
  }

  function offerRecovery(form) {
    const banner = $("[data-recovery]", form) || $(`[data-recovery-of="${CSS.escape(form.id)}"]`);
    if (!banner) return;
    const kept = keptText(form);
    if (!kept) return;
    const { text } = kept;
    // Out of the way of what is typed now: neither overwrites the other before the choice is made.
    if (kept.key === storageKey(form)) {
      store.remove(kept.key);
      kept.key += ":earlier";
      store.write(kept.key, text);
    }
    const when = $("[data-recovery-when]", banner);
    if (when) when.textContent = relative(new Date(text.at));
    const base = $("[data-recovery-base]", banner);
    if (base) base.textContent = text.base && text.base !== form.dataset.base ? ` It was begun on v${text.base}.` : "";
    banner.hidden = false;
    $("[data-recover-text]", banner)?.addEventListener("click", () => {
      fill(form, text.values);
      banner.hidden = true;
      remember(form);
      store.remove(kept.key);
    });
    $("[data-forget-text]", banner)?.addEventListener("click", () => {
      store.remove(kept.key);
      banner.hidden = true;
      form.querySelector("input:not([type=hidden]), textarea, select")?.focus();
    });
    // Who comes back from trying the text goes on with it.
    if (location.hash === "#unsaved") addEventListener("load", () => $("[data-recover-text]", banner).click(), { once: true });
  }

  // Text kept on this base first, then on any older one of the same agent and person.
  function keptText(form) {
    const own = storageKey(form);
    const start = own.slice(0, own.lastIndexOf(":") + 1);
    const keys = [own, ...store.keys().filter((key) => key !== own && key.startsWith(start))];
    for (const key of keys) {
      const text = store.read(key);
      if (!Array.isArray(text?.values)) continue;
      if (JSON.stringify(text.values) !== snapshot(form)) return { key, text };
      store.remove(key);
    }
    return null;
  }

  function fill(form, kept) {
    const places = {};
    for (const [name, value, checked] of kept) {
      const fields = [...form.elements].filter((field) => field.name === name && field.type !== "hidden");
      if (checked !== undefined) {
        fields.filter((field) => field.value === value).forEach((field) => (field.checked = checked));
        continue;
      }
      const field = fields[(places[name] = (places[name] ?? -1) + 1)];
      if (!field) continue;
      if (Array.isArray(value)) [...field.options].forEach((option) => (option.selected = value.includes(option.value)));
      else field.value = value;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    form.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // A comparison offers what this browser keeps unsaved of the agent; the editor's review then compares it.
  function offerUnsaved(form) {
    const start = `${PREFIX}${page.dataset.user}:${form.dataset.agent}:`;
    const kept = store.keys().filter((key) => key.startsWith(start)).map(store.read).find((text) => Array.isArray(text?.values));
    if (!kept) return;
    const select = form.elements.namedItem("to");
    select.add(new Option("My unsaved text", "unsaved"), 0);
    form.addEventListener("submit", (event) => {
      if (select.value !== "unsaved") return;
      event.preventDefault();
      reviewKept(form, kept);
    });
  }

  function reviewKept(form, kept) {
    const review = document.createElement("form");
    review.method = "post";
    review.action = form.dataset.review;
    const send = (name, value) => {
      const field = document.createElement("textarea"); // it keeps line ends
      field.name = name;
      field.value = value ?? "";
      review.append(field);
    };
    for (const [name, value, checked] of kept.values) if (checked !== false) [value].flat().forEach((each) => send(name, each));
    send("head", kept.head);
    send("against", form.elements.namedItem("from").value);
    send("layout", form.elements.namedItem("layout").value);
    send("csrfmiddlewaretoken", freshToken());
    review.hidden = true;
    page.append(review);
    review.submit();
  }

  // What a plain submit sent was saved if the page that followed says so; an error page or a sign-in does not.
  function forgetWhatWasSent() {
    const key = store.marked();
    if (!key || !$("[data-toast]:not(.toast-fault)")) return;
    if (!$$("form[data-recover]").some((form) => storageKey(form) === key)) store.remove(key);
    store.mark("");
  }

  const timers = new WeakMap();
  function rememberSoon(event) {
    const form = event.target.form || event.target.closest?.("form");
    if (!form?.matches("form[data-recover], form[data-guard]")) return;
    clearTimeout(timers.get(form));
    timers.set(
      form,
      setTimeout(() => (form.matches("[data-recover]") ? remember(form) : showDirt(form)), 400),
    );
  }
  on("input", rememberSoon);
  on("change", rememberSoon);
  addEventListener("pagehide", rememberAll);
  on("visibilitychange", () => document.hidden && rememberAll());

  addEventListener("beforeunload", (event) => {
    if ($$("form[data-guard]").some(isDirty)) event.preventDefault();
  });

  // A plain submit leaves the page on purpose. The text stays kept until the answer has shown that it was saved: the next
  // page carries the new base and finds nothing that differs.
  on("submit", (event) => {
    const form = event.target;
    if (!form.matches("form[data-guard]")) return;
    setTimeout(() => {
      if (event.defaultPrevented) return;
      rememberAll();
      if (form.matches("[data-recover]")) store.mark(storageKey(form));
      leaving.add(form);
    });
  });
  addEventListener("pageshow", (event) => event.persisted && $$("form[data-guard]").forEach((form) => leaving.delete(form)));

  // With htmx: what was sent becomes the new ground once it is saved; what was typed since stays unsaved.
  const sent = new WeakMap();
  on("htmx:before:request", (event) => {
    const form = event.detail.ctx.sourceElement; // other requests may send the form along
    if (form?.matches?.("form[data-save]")) sent.set(form, { text: snapshot(form), key: storageKey(form) });
  });
  on("htmx:finally:request", (event) => {
    const { ctx } = event.detail;
    const form = ctx.sourceElement;
    if (!sent.has(form)) return;
    const { text, key } = sent.get(form);
    sent.delete(form);
    const saved = savedDetail(ctx.hx?.trigger);
    if (!saved) return;
    store.remove(key);
    if (!form.isConnected) return;
    if (saved.base) form.dataset.base = saved.base;
    // The name and message belonged to that save.
    [...form.elements].filter((field) => field.matches("[data-of-save]")).forEach((field) => {
      field.value = "";
      count(field);
    });
    baselines.set(form, text);
    remember(form);
  });

  function savedDetail(trigger = "") {
    if (!trigger.startsWith("{")) return trigger.split(/\s*,\s*/).includes("agent-saved") ? {} : null;
    try {
      const told = JSON.parse(trigger);
      return "agent-saved" in told ? told["agent-saved"] || {} : null;
    } catch {
      return null;
    }
  }

  // Taking the other side: what was typed here is given up on purpose.
  on("click", (event) => {
    const link = event.target.closest("a[data-forget]");
    const form = link && document.getElementById(link.dataset.forget);
    if (!form) return;
    if (!confirm("Give up what you typed here? It is not saved anywhere.")) return event.preventDefault();
    store.remove(storageKey(form));
    leaving.add(form);
  });

  // Testing takes the unsaved text along: it is kept here, and Try it reads it.
  on("click", (event) => {
    const link = event.target.closest("a[data-test]");
    const form = link && document.getElementById(link.dataset.test);
    if (!form) return;
    const dirty = isDirty(form);
    link.search = dirty ? "?columns=live,unsaved" : "";
    if (!dirty) return;
    remember(form);
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) leaving.add(form);
  });

  // Signing out clears what this person left in the browser.
  on("submit", (event) => {
    if (!event.target.matches("[data-sign-out]")) return;
    const dirty = $$("form[data-guard]").some(isDirty);
    if (dirty && !confirm("You have unsaved text. Signing out throws it away.")) return event.preventDefault();
    $$("form[data-guard]").forEach((form) => leaving.add(form));
    store.keys().filter((key) => key.startsWith(`${PREFIX}${page.dataset.user}:`)).forEach(store.remove);
  });

  // --- counters: characters exactly, tokens as an estimate that says so

  const figures = new Intl.NumberFormat("en");
  const plural = (count, noun) => `${figures.format(count)} ${noun}${count === 1 ? "" : "s"}`;

  // Python counts code points; so does this.
  function countCharacters(text) {
    let pairs = 0;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code >= 0xd800 && code <= 0xdbff) pairs++;
    }
    return text.length - pairs;
  }

  function count(field) {
    const counter = field.id && $(`[data-counter-for="${CSS.escape(field.id)}"]`);
    if (!counter) return;
    const characters = countCharacters(field.value);
    const limit = Number(counter.dataset.limit) || 0;
    const parts = [limit ? `${figures.format(characters)} / ${figures.format(limit)}` : plural(characters, "character")];
    if ("tokens" in counter.dataset) parts.push(`about ${plural(Math.ceil(characters / 4), "token")} (estimate)`);
    counter.textContent = parts.join(" · ");
    counter.toggleAttribute("data-over", limit > 0 && characters > limit);
  }
  on("input", (event) => event.target.matches?.("input, textarea") && (count(event.target), listVariables(event.target)));

  function listVariables(field) {
    const list = field.id && $(`[data-variables-of="${CSS.escape(field.id)}"]`);
    if (!list) return;
    const names = [...new Set([...field.value.matchAll(/\{\{\s*([\w.-]+)\s*\}\}/g)].map((match) => match[1]))];
    list.replaceChildren(
      ...names.map((name) => {
        const item = document.createElement("li");
        const code = document.createElement("code");
        code.textContent = `{{${name}}}`;
        item.append(code);
        return item;
      }),
    );
    const none = list.parentElement.querySelector("[data-no-variables]");
    if (none) none.hidden = names.length > 0;
  }

  // An answer fills the places for errors; the fields themselves stay, and are told of theirs.
  function markFaults() {
    $$("[data-error-of]").forEach((place) => {
      const field = document.getElementById(place.dataset.errorOf);
      const shown = document.getElementById(`${place.dataset.errorOf}_editor`) || field;
      if (!shown || field?.matches("fieldset")) return;
      if (place.hidden) shown.removeAttribute("aria-invalid");
      else shown.setAttribute("aria-invalid", "true");
      const about = new Set((shown.getAttribute("aria-describedby") || "").split(" ").filter(Boolean));
      if (place.hidden) about.delete(place.id);
      else about.add(place.id);
      if (about.size) shown.setAttribute("aria-describedby", [...about].join(" "));
      else shown.removeAttribute("aria-describedby");
    });
  }

  // Where JSON breaks stands beside the field and, in short, beside the save button.
  on("json-checked", (event) => {
    const field = event.target;
    const place = document.getElementById(`${field.id}_fault`) || makeFaultPlace(field);
    place.hidden = !event.detail.sentence;
    place.textContent = event.detail.sentence;
    field.form && showReasons(field.form);
  });

  function makeFaultPlace(field) {
    const place = document.createElement("p");
    place.id = `${field.id}_fault`;
    place.className = "field-error";
    place.setAttribute("role", "status");
    field.closest(".field")?.append(place);
    return place;
  }

  // The label's own words, without "optional" beside them.
  function nameOf(field) {
    const words = [...(field.labels?.[0]?.childNodes ?? [])].filter((node) => node.nodeType === Node.TEXT_NODE);
    return words.map((node) => node.data.trim()).join(" ").trim() || field.name;
  }

  function showReasons(form) {
    const broken = [...form.elements].filter((field) => field.validity?.customError);
    const names = broken.map(nameOf);
    const reason = names.length ? `${names.join(", ")}: not valid JSON` : "";
    $$(`[data-reason-of="${CSS.escape(form.id)}"]`).forEach((place) => (place.textContent = reason));
  }

  // --- pickers

  function filterPicker(picker) {
    const words = $("[data-picker-search]", picker).value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    $$("[data-picker-option]", picker).forEach((option) => {
      const text = option.textContent.toLowerCase();
      option.hidden = !words.every((word) => text.includes(word));
      shown += option.hidden ? 0 : 1;
    });
    $("[data-picker-no-match]", picker).hidden = !words.length || shown > 0;
  }

  function countPicker(picker) {
    const place = $("[data-picker-count]", picker);
    const chosen = $$("input[type=checkbox]:checked", picker).length;
    const all = $$("[data-picker-option]", picker).length;
    if (place) place.textContent = `${chosen} of ${all} chosen`;
    $$(`[data-count-of="${CSS.escape(picker.id)}"]`).forEach((badge) => (badge.textContent = chosen || ""));
  }

  on("input", (event) => {
    const picker = event.target.matches("[data-picker-search]") && event.target.closest("[data-picker]");
    if (picker) filterPicker(picker);
  });
  on("keydown", (event) => {
    if (!event.target.matches("[data-picker-search]")) return;
    if (event.key === "Enter") event.preventDefault(); // it would submit the form around it
    if (event.key === "Escape" && event.target.value) {
      event.preventDefault();
      event.target.value = "";
      filterPicker(event.target.closest("[data-picker]"));
    }
    if (event.key === "ArrowDown") {
      event.preventDefault();
      $("[data-picker-option]:not([hidden]) input", event.target.closest("[data-picker]"))?.focus();
    }
  });
  on("change", (event) => {
    const picker = event.target.closest?.("[data-picker]");
    if (picker) countPicker(picker);
    else if (event.target.matches?.("form")) $$("[data-picker]", event.target).forEach(countPicker);
  });
  on("click", (event) => {
    const button = event.target.closest("[data-remove-missing]");
    if (!button) return;
    const picker = button.closest("[data-picker]");
    const box = $("input", button.closest("[data-missing]"));
    box.checked = false;
    box.dispatchEvent(new Event("change", { bubbles: true }));
    button.closest("[data-missing]").hidden = true;
    $("[data-picker-search]", picker)?.focus();
  });

  // --- tables: all rows, ranges with Shift, how many

  let lastBox = null;
  on("click", (event) => {
    const box = event.target;
    if (!box.matches?.("tbody .select input[type=checkbox]")) return;
    const boxes = $$(".select input[type=checkbox]", box.closest("tbody"));
    if (event.shiftKey && boxes.includes(lastBox)) {
      const [from, to] = [boxes.indexOf(lastBox), boxes.indexOf(box)].sort((a, b) => a - b);
      boxes.slice(from, to + 1).forEach((other) => (other.checked = box.checked));
    }
    lastBox = box;
    countRows(box.closest("table"));
  });
  on("change", (event) => {
    if (!event.target.matches?.("[data-select-all]")) return;
    const table = event.target.closest("table");
    $$("tbody .select input[type=checkbox]", table).forEach((box) => (box.checked = event.target.checked));
    countRows(table);
  });

  function countRows(table) {
    const boxes = $$("tbody .select input[type=checkbox]", table);
    const chosen = boxes.filter((box) => box.checked).length;
    const all = $("[data-select-all]", table);
    if (all) {
      all.checked = chosen > 0 && chosen === boxes.length;
      all.indeterminate = chosen > 0 && chosen < boxes.length;
    }
    $$("[data-selected-count]", table.closest("form") || document).forEach((place) => (place.textContent = `${chosen} selected`));
  }

  // Two boxes compare any pair: a third choice drops the oldest.
  let lastTicked = null;
  on("change", (event) => {
    const box = event.target;
    if (!box.matches?.("[data-pair]")) return;
    const others = $$("[data-pair]:checked").filter((other) => other !== box && other !== lastTicked);
    if (box.checked && $$("[data-pair]:checked").length > 2) others.forEach((other) => (other.checked = false));
    if (box.checked) lastTicked = box;
    $$("[data-pair-button]").forEach(allowPair);
  });
  const allowPair = (button) => (button.disabled = $$("[data-pair]:checked").length !== 2);

  // --- copy, and the name of the modifier key

  on("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      showToast({ message: "Copied." });
    } catch {
      getSelection().selectAllChildren(source);
      showToast({ message: "Selected. Copy it with the keyboard.", kind: "fault" });
    }
  });

  // --- times: the same words as the server writes

  const UNITS = [
    ["year", 31536000],
    ["month", 2629800],
    ["week", 604800],
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
  ];
  function relative(date) {
    const seconds = (Date.now() - date.getTime()) / 1000;
    const unit = UNITS.find(([, size]) => seconds >= size);
    if (!unit) return "just now";
    const count = Math.floor(seconds / unit[1]);
    return `${count}\u00a0${unit[0]}${count === 1 ? "" : "s"} ago`;
  }
  function refreshTimes() {
    $$("time[data-relative]").forEach((time) => {
      const text = relative(new Date(time.dateTime));
      if (time.textContent !== text) time.textContent = text;
    });
  }
  setInterval(refreshTimes, 30_000);

  // --- the index of sections marks where one is

  const seen = new IntersectionObserver(
    (entries) => {
      const top = entries.filter((entry) => entry.isIntersecting)[0];
      if (!top) return;
      $$(".section-index a").forEach((link) => {
        if (link.hash === `#${top.target.id}`) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      });
    },
    { rootMargin: "-20% 0px -70% 0px" },
  );

  // --- start: once per page, and again after each swap for what is new

  const started = {};
  function once(selector, root, begin) {
    const done = (started[selector] ??= new WeakSet());
    $$(selector, root).forEach((element) => {
      if (done.has(element)) return;
      done.add(element);
      begin(element);
    });
  }

  // The model names that are offered are those of the provider, where it is one that is known.
  let modelNames = null;
  function offerModelNames() {
    const [list, provider] = [$("#model-names"), $("#id_provider")];
    if (!list || !provider) return;
    modelNames ??= [...list.options];
    const own = modelNames.filter((option) => option.dataset.provider === provider.value.trim());
    list.replaceChildren(...(own.length ? own : modelNames));
  }
  on("input", (event) => event.target.id === "id_provider" && offerModelNames());

  function start(root) {
    once("form[data-guard], form[data-recover]", root, (form) => baselines.set(form, snapshot(form)));
    once("form[data-recover]", root, offerRecovery);
    markFaults();
    once("[data-counter-for]", root, (counter) => {
      const field = document.getElementById(counter.dataset.counterFor);
      if (field) count(field);
    });
    once("[data-variables-of]", root, (list) => listVariables(document.getElementById(list.dataset.variablesOf)));
    once("[data-picker]", root, countPicker);
    once("form[data-review]", root, offerUnsaved);
    once("[data-toast]", root, startToast);
    once("[data-pair-button]", root, allowPair);
    if (isMac) once("[data-modifier]", root, (key) => (key.textContent = "⌘"));
    once(".section-index a", root, (link) => {
      const section = link.hash && $(`#${CSS.escape(link.hash.slice(1))}`);
      if (section) seen.observe(section);
    });
    once("[data-change-position]", root, (place) => {
      place.textContent = plural($$("[data-change]").filter((change) => change.checkVisibility()).length, "change");
    });
  }

  forgetWhatWasSent();
  offerModelNames();
  start(document);
  window.showToast = showToast;
})();
