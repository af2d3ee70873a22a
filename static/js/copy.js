// Buttons that copy the text of an element to the clipboard.

(() => {
  "use strict";

  const { listen, showToast } = agentcms;

  listen("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      showToast({ message: "Copied." });
    } catch {
      selectText(source);
      const message = "The browser did not allow copying. The text is selected: copy it with the keyboard.";
      showToast({ message, kind: "fault" });
    }
  });

  // Browsers allow copying only over HTTPS.
  function selectText(source) {
    source.closest("details")?.setAttribute("open", "");
    if (!source.matches("textarea, input")) return getSelection().selectAllChildren(source);
    source.focus();
    source.select();
  }
})();
