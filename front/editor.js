// CodeMirror for <textarea data-editor="text"> and <textarea data-editor="json">.
//
// The hidden textarea stays in the form and always has the current value, so that a form works with and without this file.
// scripts/vendor.py bundles this file into static/vendor/codemirror/editor.js, where window.AgentEditor has its exports.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { HighlightStyle, bracketMatching, foldGutter, foldKeymap, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, linter } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  MatchDecorator,
  ViewPlugin,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

const editors = new WeakMap(); // textarea: its editor

// --- highlighting: by classes, because css/editor.css has the colours of both themes

function highlight(regexp, classOf) {
  const matcher = new MatchDecorator({
    regexp,
    decoration: (match) => Decoration.mark({ class: classOf(match) }),
  });
  return ViewPlugin.fromClass(
    class {
      constructor(view) {
        this.decorations = matcher.createDeco(view);
      }
      update(update) {
        this.decorations = matcher.updateDeco(update, this.decorations);
      }
    },
    { decorations: (plugin) => plugin.decorations },
  );
}

const variables = highlight(/\{\{\s*[\w.-]+\s*\}\}/g, () => "editor-variable");
// Markdown by regular expressions, line by line: a full grammar is ten times as large and adds few colours.
const headings = highlight(/^#{1,6} .*$/g, () => "editor-heading");
const listMarks = highlight(/^\s*(?:[-*+]|\d+[.)])(?= )/g, () => "editor-list-mark");
const emphasis = highlight(/\*\*[^*\n]+\*\*|`[^`\n]+`/g, (match) => (match[0][0] === "`" ? "editor-code" : "editor-strong"));

const jsonColours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.propertyName, class: "editor-key" },
    { tag: tags.string, class: "editor-string" },
    { tag: [tags.number, tags.bool, tags.null], class: "editor-literal" },
    { tag: [tags.separator, tags.squareBracket, tags.brace], class: "editor-punctuation" },
  ]),
);

// --- errors in JSON

const LINT_DELAY = 250;
const findDiagnostics = jsonParseLinter();
// An empty field is valid: it means that nothing is set.
const isEmpty = (text) => !text.trim();
const lintJson = linter((view) => (isEmpty(view.state.doc.toString()) ? [] : findDiagnostics(view)), { delay: LINT_DELAY });

/** Return the first error in a JSON text as {line, column, message}, or null. */
export function findJsonError(text) {
  if (isEmpty(text)) return null;
  const state = EditorState.create({ doc: text });
  const [diagnostic] = findDiagnostics({ state });
  if (!diagnostic) return null;
  const line = state.doc.lineAt(diagnostic.from);
  const message = diagnostic.message.replace(/^JSON\.parse: /, "").replace(/ (in JSON )?at (position|line) .*$/, "");
  return { line: line.number, column: diagnostic.from - line.from + 1, message };
}

function validateJson(textarea) {
  const error = findJsonError(textarea.value);
  const message = error ? `Line ${error.line}, column ${error.column}: ${error.message}.` : "";
  // The browser then refuses to submit the form, and shows the message at this field.
  textarea.setCustomValidity(message);
  textarea.dispatchEvent(new CustomEvent("json-checked", { bubbles: true, detail: { error, message } }));
}

// --- extensions

// When a selection is typed over, Chromium copies its colour into an inline style, which violates the policy (CSP).
// Let the editor replace the text instead.
const replaceSelectionOnInput = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const isTyping = event.inputType === "insertText" && event.data && !event.isComposing;
    if (!isTyping || view.state.readOnly || view.state.selection.main.empty) return false;
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

const LANGUAGES = {
  text: [variables, headings, listMarks, emphasis],
  json: [json(), jsonColours, bracketMatching(), foldGutter(), lintGutter(), lintJson, variables],
};

const BASE_EXTENSIONS = [
  lineNumbers(),
  highlightActiveLineGutter(),
  highlightActiveLine(),
  highlightSpecialChars(),
  history(),
  drawSelection(),
  search({ top: true }),
  highlightSelectionMatches(),
  EditorView.lineWrapping,
  replaceSelectionOnInput,
  EditorState.tabSize.of(2),
  // No binding for Tab: it moves to the next field, as everywhere on the page.
  keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, ...lintKeymap, ...foldKeymap]),
];

function extensionsFor(textarea, onChange) {
  return [
    EditorView.cspNonce.of(document.querySelector('meta[name="csp-nonce"]')?.content || ""),
    EditorState.readOnly.of(textarea.readOnly || textarea.disabled),
    EditorView.contentAttributes.of(contentAttributes(textarea)),
    ...BASE_EXTENSIONS,
    LANGUAGES[textarea.dataset.editor] || LANGUAGES.text,
    onChange,
  ];
}

function contentAttributes(textarea) {
  const attributes = { id: `${textarea.id}_editor`, tabindex: "0", spellcheck: String(textarea.dataset.editor === "text") };
  const label = textarea.labels?.[0];
  if (label) {
    label.id ||= `${textarea.id}_label`;
    attributes["aria-labelledby"] = label.id;
  } else {
    attributes["aria-label"] = textarea.getAttribute("aria-label") || textarea.name;
  }
  for (const name of ["aria-describedby", "aria-invalid", "aria-required"]) {
    const value = textarea.getAttribute(name);
    if (value) attributes[name] = value;
  }
  return attributes;
}

// --- the editor of a textarea

/** Create the editor of a textarea, or return the one that it has. */
export function enhance(textarea) {
  if (editors.has(textarea)) return editors.get(textarea);
  const isJson = textarea.dataset.editor === "json";
  let isWriting = false;

  const onChange = EditorView.updateListener.of((update) => {
    if (!update.docChanged) return;
    isWriting = true;
    textarea.value = update.state.doc.toString();
    textarea.dispatchEvent(new Event("input", { bubbles: true }));
    isWriting = false;
    if (isJson) validateJson(textarea);
  });
  const view = new EditorView({
    state: EditorState.create({ doc: textarea.value, extensions: extensionsFor(textarea, onChange) }),
  });
  hideBehind(textarea, view);
  forwardEvents(textarea, view, () => isWriting);
  if (isJson) validateJson(textarea);

  editors.set(textarea, createHandle(view));
  return editors.get(textarea);
}

function hideBehind(textarea, view) {
  const frame = document.createElement("div");
  frame.className = "editor";
  frame.dataset.kind = textarea.dataset.editor;
  frame.append(view.dom);
  textarea.after(frame);
  textarea.classList.add("visually-hidden");
  textarea.tabIndex = -1;
  textarea.setAttribute("aria-hidden", "true");
}

function forwardEvents(textarea, view, isWriting) {
  textarea.addEventListener("focus", () => view.focus());
  textarea.labels?.forEach((label) => label.addEventListener("click", () => view.focus()));
  // Scripts that set the value of the textarea, such as recovery, send an input event.
  textarea.addEventListener("input", () => {
    if (!isWriting() && textarea.value !== view.state.doc.toString()) replaceText(view, textarea.value);
  });
  textarea.form?.addEventListener("reset", () => setTimeout(() => replaceText(view, textarea.value)));
}

function replaceText(view, text) {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
}

function createHandle(view) {
  return {
    view,
    focus: () => view.focus(),
    insert: (text) => view.dispatch(view.state.replaceSelection(text)),
    goTo: (line, column = 1) => goTo(view, line, column),
  };
}

function goTo(view, lineNumber, column) {
  const line = view.state.doc.line(Math.min(lineNumber, view.state.doc.lines));
  const position = Math.min(line.from + column - 1, line.to);
  view.dispatch({ selection: { anchor: position }, effects: EditorView.scrollIntoView(position, { y: "center" }) });
  view.focus();
}

/** Create the editors of all marked textareas inside an element. */
export function enhanceAll(root = document) {
  root.querySelectorAll("textarea[data-editor]").forEach(enhance);
}

enhanceAll();
// htmx sends this event for each element that it adds to the page.
document.addEventListener("htmx:after:process", (event) => enhanceAll(event.target));
