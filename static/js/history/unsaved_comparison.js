// The comparison of two versions: offer the unsaved text of this browser as one side.

(() => {
  "use strict";

  const { onAdded, findNewestText, csrfToken } = agentcms;

  onAdded("form[data-review]", (form) => {
    const text = findNewestText(form.dataset.agent);
    if (!text) return;
    const select = form.elements.namedItem("to");
    select.add(new Option("My unsaved text", "unsaved"), 0);
    form.addEventListener("submit", (event) => {
      if (select.value !== "unsaved") return;
      event.preventDefault();
      submitReview(form, text);
    });
  });

  // The server compares the text by the review of the editor, which takes the form of the editor.
  function submitReview(form, text) {
    const review = document.createElement("form");
    review.method = "post";
    review.action = form.dataset.review;
    review.hidden = true;
    for (const [name, value, checked] of text.values) {
      if (checked !== false) [value].flat().forEach((single) => addField(review, name, single));
    }
    addField(review, "head", text.head);
    addField(review, "against", form.elements.namedItem("from").value);
    addField(review, "layout", form.elements.namedItem("layout").value);
    addField(review, "csrfmiddlewaretoken", csrfToken());
    document.body.append(review);
    review.submit();
  }

  function addField(form, name, value) {
    const field = document.createElement("textarea"); // an input would remove line breaks
    field.name = name;
    field.value = value ?? "";
    form.append(field);
  }
})();
