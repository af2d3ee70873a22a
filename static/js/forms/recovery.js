// Recovery of unsaved text: store what is typed in form[data-recover], and offer it when the form is opened again.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded } = agentcms;
  const { serialize, readValues, isTracked, isChanged, markLeft, isLeft, showChanged } = agentcms;
  const { PAGE_ID, keyOf, keyOfEarlier, keysOfAgent, readText, writeText, removeText, markSubmitted } = agentcms;
  const STORE_DELAY = 400;
  const NOT_RESTORED_MESSAGE =
    "Not everything was restored: the server cannot be reached, or you have been signed out. Your text stays stored.";
  const DISCARD_QUESTION = "Discard your unsaved changes? They cannot be restored.";

  // --- storing

  const written = new WeakSet(); // forms whose text this page has stored: another tab may use the same key

  function store(form) {
    if (!isTracked(form)) return;
    if (isChanged(form)) {
      writeText(keyOf(form), describeText(form));
      written.add(form);
    } else if (!isLeft(form) && written.delete(form)) removeText(keyOf(form));
    showChanged(form);
  }

  function describeText(form) {
    const head = form.elements.namedItem("head")?.value;
    return { at: new Date().toISOString(), page: PAGE_ID, base: form.dataset.base, head, values: readValues(form) };
  }

  const storeAll = () => findAll("form[data-recover]").forEach(store);

  const timers = new WeakMap();
  function storeSoon(event) {
    const form = event.target.form || event.target.closest?.("form");
    if (!form?.matches("form[data-recover], form[data-guard]")) return;
    const update = form.matches("[data-recover]") ? store : showChanged;
    clearTimeout(timers.get(form));
    timers.set(form, setTimeout(() => update(form), STORE_DELAY));
  }

  listen("input", storeSoon);
  listen("change", storeSoon);
  listen("session-expired", storeAll);
  listen("visibilitychange", () => document.hidden && storeAll());
  addEventListener("pagehide", storeAll);

  // --- offering

  onAdded("form[data-recover]", offerRecovery);

  function offerRecovery(form) {
    const banner = find("[data-recovery]", form);
    const key = banner && findRecoverableKey(form);
    if (!key) return;
    const text = readText(key);
    const recovery = { form, banner, text, key: moveAside(key, text, form) };
    describe(recovery);
    find("[data-recover-text]", banner)?.addEventListener("click", () => restore(recovery));
    find("[data-forget-text]", banner)?.addEventListener("click", () => discard(recovery));
    addEventListener("pageshow", () => withdraw(recovery), { once: true });
    // The link back from the playground has this fragment. The editors over the fields must be ready first.
    if (location.hash === "#unsaved") addEventListener("load", () => restore(recovery), { once: true });
  }

  // Text with the same base first, then text that is based on an older version.
  function findRecoverableKey(form) {
    const ownKey = keyOf(form);
    const keys = [ownKey, ...keysOfAgent(form.dataset.agent || "").filter((key) => key !== ownKey)];
    for (const key of keys) {
      const text = readText(key);
      if (!text) continue;
      if (JSON.stringify(text.values) !== serialize(form)) return key;
      removeText(key);
    }
    return null;
  }

  // Text under the key of the form would be overwritten by what is typed before the user decides. That of each page has
  // a place of its own, so that text which waits for a decision is not overwritten either.
  function moveAside(key, text, form) {
    if (key !== keyOf(form)) return key;
    const place = keyOfEarlier(key, text.page);
    removeText(key);
    writeText(place, text);
    return place;
  }

  function describe({ form, banner, text }) {
    const time = find("[data-recovery-when]", banner);
    if (time) time.textContent = formatTime(new Date(text.at));
    const base = find("[data-recovery-base]", banner);
    if (base) base.textContent = text.base && text.base !== form.dataset.base ? ` It is based on v${text.base}.` : "";
    banner.hidden = false;
  }

  // Return the time of day, with the date if it is not today's.
  function formatTime(date) {
    const isToday = date.toDateString() === new Date().toDateString();
    const day = isToday ? {} : { year: "numeric", month: "short", day: "numeric" };
    return date.toLocaleString(undefined, { ...day, hour: "2-digit", minute: "2-digit" });
  }

  // The server renders the rows. Until then, and if it cannot be reached, the text stays stored under its key.
  async function restore({ form, banner, text, key }) {
    fill(form, text.values);
    banner.hidden = true;
    try {
      if (form.dataset.fieldsUrl) await agentcms.renderRows(form, text.values);
    } catch {
      banner.hidden = false;
      agentcms.showToast({ message: NOT_RESTORED_MESSAGE, kind: "fault" });
      return;
    }
    store(form);
    removeText(key);
  }

  // After going back, the browser has filled in the text itself.
  function withdraw({ form, banner, text, key }) {
    if (JSON.stringify(text.values) !== serialize(form)) return;
    banner.hidden = true;
    store(form);
    removeText(key);
  }

  function discard({ form, banner, key }) {
    removeText(key);
    banner.hidden = true;
    find("input:not([type=hidden]), textarea, select", form)?.focus();
  }

  function fill(form, values) {
    const positions = {};
    for (const [name, value, checked] of values) {
      const fields = [...form.elements].filter((field) => field.name === name && field.type !== "hidden");
      if (checked !== undefined) {
        fields.filter((field) => field.value === value).forEach((field) => (field.checked = checked));
        continue;
      }
      // Several fields may have one name: take them in order.
      const field = fields[(positions[name] = (positions[name] ?? -1) + 1)];
      if (field) fillField(field, value);
    }
    form.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function fillField(field, value) {
    if (Array.isArray(value)) [...field.options].forEach((option) => (option.selected = value.includes(option.value)));
    else field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  // --- leaving the form

  // A submit without htmx. The text is removed by the next page, if that page confirms that it was saved.
  listen("submit", (event) => {
    const form = event.target;
    if (!form.matches("form[data-guard]")) return;
    setTimeout(() => {
      if (event.defaultPrevented) return;
      storeAll();
      if (form.matches("[data-recover]")) markSubmitted(form);
      markLeft(form);
    });
  });

  // A link that discards the text of a form, as in a conflict with another version.
  listen("click", (event) => {
    const link = event.target.closest("a[data-forget]");
    const form = link && document.getElementById(link.dataset.forget);
    if (!form) return;
    if (!confirm(DISCARD_QUESTION)) return event.preventDefault();
    removeText(keyOf(form));
    markLeft(form);
  });

  // The link to the playground, which reads the stored text.
  listen("click", (event) => {
    const link = event.target.closest("a[data-test]");
    const form = link && document.getElementById(link.dataset.test);
    if (!form) return;
    const changed = isChanged(form);
    link.search = changed ? "?columns=live,unsaved" : "";
    if (!changed) return;
    store(form);
    // With a modifier key the link opens in another tab, and this page stays.
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) markLeft(form);
  });

  Object.assign(agentcms, { store });
})();
