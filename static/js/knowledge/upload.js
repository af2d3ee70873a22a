// Uploads of documents: one request for each file, with its progress and its error. Files can be dropped on the form.

(() => {
  "use strict";

  const { find, findAll, onAdded } = window.agentcms;
  const RESPONSES = {
    0: "The server cannot be reached. Upload the file again.",
    403: "You may no longer add documents, or another user has signed in in this browser. Reload the page.",
    404: "The knowledge base no longer exists.",
    413: "The file is too large.",
    429: "Too many requests. Wait a moment and upload the file again.",
  };
  const SIGNED_OUT = "You have been signed out. Sign in in another tab and upload the file again.";

  onAdded("form[data-upload]", (form) => {
    const input = find("input[type=file]", form);
    const zone = find("[data-drop]", form);
    const list = find("[data-upload-list]", form);
    const template = find("[data-upload-row]", form);
    let waiting = [];
    let isSending = false;

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (input.files.length) add([...input.files]);
      else showMissing(true);
      input.value = "";
    });
    input.addEventListener("change", () => showMissing(false));
    ["dragenter", "dragover"].forEach((type) =>
      zone.addEventListener(type, (event) => {
        event.preventDefault();
        zone.classList.add("drop-active");
      }),
    );
    ["dragleave", "drop"].forEach((type) => zone.addEventListener(type, () => zone.classList.remove("drop-active")));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      add([...event.dataTransfer.files]);
    });

    // The metadata that was typed stays.
    function showMissing(isMissing) {
      find("#files-error", form).hidden = !isMissing;
      input.setAttribute("aria-invalid", isMissing);
      input.setAttribute("aria-describedby", isMissing ? "files-error files-help" : "files-help");
      if (isMissing) input.focus();
    }

    function add(files) {
      showMissing(false);
      waiting.push(...files.map((file) => ({ file, row: addRow(file.name) })));
      if (!isSending) sendNext();
    }

    function addRow(name) {
      const row = template.content.firstElementChild.cloneNode(true);
      find("[data-name]", row).textContent = name;
      find("progress", row).setAttribute("aria-label", `Upload of ${name}`);
      list.append(row);
      return row;
    }

    function sendNext() {
      const next = waiting.shift();
      isSending = Boolean(next);
      if (!next) return refresh();
      const data = new FormData(form);
      data.delete("files");
      data.append("files", next.file, next.file.name);
      const request = new XMLHttpRequest();
      request.open("POST", form.action);
      request.setRequestHeader("Accept", "application/json");
      request.upload.addEventListener("progress", (event) => {
        if (event.lengthComputable) find("progress", next.row).value = (100 * event.loaded) / event.total;
      });
      request.addEventListener("loadend", () => {
        finish(next.row, request);
        sendNext();
      });
      request.send(data);
    }

    function finish(row, request) {
      const error = errorOf(request);
      find("progress", row).remove();
      const result = find("[data-result]", row);
      result.textContent = error || "Uploaded";
      result.classList.toggle("field-error", Boolean(error));
    }

    function errorOf(request) {
      try {
        return JSON.parse(request.responseText).results[0].error;
      } catch {
        const { loginUrl } = document.body.dataset;
        if (request.responseURL && new URL(request.responseURL).pathname === loginUrl) return SIGNED_OUT;
        return RESPONSES[request.status] ?? "The server reported an error. Upload the file again.";
      }
    }

    // Files that wait are nowhere but in this page.
    addEventListener("beforeunload", (event) => isSending && event.preventDefault());

    // The table requests itself while documents wait; this is the first time after the upload.
    function refresh() {
      const table = find("#documents");
      if (table) window.htmx.ajax("GET", `${location.pathname}/documents`, { target: "#documents", swap: "outerHTML" });
    }
  });

  // A file that misses the form would replace the page.
  ["dragover", "drop"].forEach((type) =>
    addEventListener(type, (event) => {
      if (findAll("form[data-upload]").length) event.preventDefault();
    }),
  );
})();
