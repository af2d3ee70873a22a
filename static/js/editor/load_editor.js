// Loads the editor of long texts when somebody first uses the page: it is larger than all other scripts together, and until
// then the textarea shows the same text in the same place.

(() => {
  "use strict";

  const { nonce, dataset } = document.currentScript;
  const EVENTS = ["pointermove", "pointerdown", "touchstart", "keydown", "focusin", "wheel"];
  const OPTIONS = { capture: true, passive: true };

  function load(event) {
    // Browsers also report a pointer that rests where the page appears.
    if (event.type === "pointermove" && !event.movementX && !event.movementY) return;
    EVENTS.forEach((type) => removeEventListener(type, load, OPTIONS));
    const script = document.createElement("script");
    script.type = "module";
    script.nonce = nonce;
    script.src = dataset.editor;
    document.head.append(script);
  }

  EVENTS.forEach((type) => addEventListener(type, load, OPTIONS));
})();
