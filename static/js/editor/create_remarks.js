// The form of a new agent: remarks beside the button while the instructions are empty or the model cannot answer.

(() => {
  "use strict";

  const { find, listen } = agentcms;
  const UPDATE_DELAY = 200;
  const problems = JSON.parse(find("#model-problems").textContent); // by provider; blank if it is available

  function updateRemarks() {
    find("[data-remark=instructions]").hidden = find("#id_instructions").value.trim() !== "";
    const remark = find("[data-remark=model]");
    const problem = problemOf(find("#id_provider").value.trim());
    remark.hidden = !problem;
    find("[data-remark-text]", remark).textContent = problem;
  }

  function problemOf(provider) {
    if (!provider) return "";
    return provider in problems ? problems[provider] : `Unknown model provider "${provider}".`;
  }

  let timer;
  function updateSoon() {
    clearTimeout(timer);
    timer = setTimeout(updateRemarks, UPDATE_DELAY);
  }
  listen("input", updateSoon);
  listen("change", updateSoon);
})();
