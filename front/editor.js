// CodeMirror for <textarea data-editor="text"> and <textarea data-editor="json">.
//
// The hidden textarea stays in the form, so that a form works with and without this file. It gets the text a moment after
// the last key, and at once before anything reads the form: copying 200 kB takes longer than a key may take.
// scripts/vendor.py bundles this file into static/vendor/codemirror/editor.js.

import { history } from "@codemirror/commands";
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
import { findJsonError } from "./json_errors.js";
import { textKeys } from "./keys.js";

const COPY_DELAY = 150; // ms after the last key

const editors = new Map(); // textarea: its editor

// --- highlighting: by classes, because css/editor.css has the colours of both themes

// By regular expressions, line by line: a grammar is ten times as large and adds few colours.
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

// As PLACEHOLDER in agents_app/configuration/variables.py.
const PLACEHOLDER = /\{\{\s*[\w-]+(?:\.[\w-]+)*\s*(?:\|\|\s*(?:'[^']*'|"[^"]*")\s*)?\}\}/g;
const variables = highlight(PLACEHOLDER, () => "editor-variable");
const headings = highlight(/^#{1,6} .*$/g, () => "editor-heading");
const listMarks = highlight(/^\s*(?:[-*+]|\d+[.)])(?= )/g, () => "editor-list-mark");
const emphasis = highlight(/\*\*[^*\n]+\*\*|`[^`\n]+`/g, (match) => (match[0][0] === "`" ? "editor-code" : "editor-strong"));

const JSON_CLASSES = ["editor-key", "editor-string", "editor-literal", "editor-punctuation"];
const jsonColours = highlight(
  /("(?:[^"\\\n]|\\.)*"(?=\s*:))|("(?:[^"\\\n]|\\.)*")|(-?\d[\d.eE+-]*|\btrue\b|\bfalse\b|\bnull\b)|([[\]{}:,])/g,
  (match) => JSON_CLASSES[match.slice(1).findIndex(Boolean)],
);

const LANGUAGES = {
  text: [variables, headings, listMarks, emphasis],
  json: [jsonColours],
};

// --- errors in JSON

function checkJson(textarea) {
  const error = findJsonError(textarea.value);
  const message = error ? `Line ${error.line}, column ${error.column}: ${error.message}.` : "";
  textarea.dispatchEvent(new CustomEvent("json-checked", { bubbles: true, detail: { message } }));
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

function openSearch(view) {
  import("./search.js").then((module) => module.openSearch(view));
  return true;
}

const BASE_EXTENSIONS = [
  lineNumbers(),
  highlightActiveLineGutter(),
  highlightActiveLine(),
  highlightSpecialChars(),
  history(),
  drawSelection(),
  EditorView.lineWrapping,
  EditorView.perLineTextDirection.of(true), // css/editor.css gives each line the direction of its text
  replaceSelectionOnInput,
  EditorState.tabSize.of(2),
  keymap.of([...textKeys, { key: "Mod-f", run: openSearch }]),
];

function extensionsFor(textarea, onChange) {
  return [
    EditorView.cspNonce.of(document.querySelector('meta[name="csp-nonce"]')?.content || ""),
    EditorState.readOnly.of(textarea.readOnly || textarea.disabled),
    EditorView.contentAttributes.of(contentAttributes(textarea)),
    ...BASE_EXTENSIONS,
    LANGUAGES[textarea.dataset.editor] || LANGUAGES.text,
    EditorView.updateListener.of((update) => update.docChanged && onChange()),
  ];
}

function contentAttributes(textarea) {
  const attributes = { id: `${textarea.id}_editor`, tabindex: "0", spellcheck: String(textarea.dataset.editor === "text") };
  if (textarea.dir) attributes.dir = textarea.dir;
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

class TextareaEditor {
  constructor(textarea) {
    this.textarea = textarea;
    this.timer = 0;
    this.isCopying = false;
    const extensions = extensionsFor(textarea, () => this.copySoon());
    this.view = new EditorView({ state: EditorState.create({ doc: textarea.value, extensions }) });
    this.takeOver();
    this.forwardEvents();
    if (this.isJson) checkJson(textarea);
  }

  get isJson() {
    return this.textarea.dataset.editor === "json";
  }

  // Take the place of the textarea, and the focus and the selection of somebody who types already.
  takeOver() {
    const hasFocus = document.activeElement === this.textarea;
    const { selectionStart: anchor, selectionEnd: head } = this.textarea;
    const frame = document.createElement("div");
    frame.className = "editor";
    frame.dataset.kind = this.textarea.dataset.editor;
    frame.append(this.view.dom);
    this.textarea.after(frame);
    this.textarea.hidden = true; // a hidden textarea has no layout, which would take longer with each character
    if (!hasFocus) return;
    this.view.dispatch({ selection: { anchor, head } });
    this.view.focus();
  }

  forwardEvents() {
    const { textarea, view } = this;
    textarea.labels?.forEach((label) => label.addEventListener("click", () => view.focus()));
    view.contentDOM.addEventListener("blur", () => this.copy());
    // Scripts that set the value of the textarea, such as recovery, send an input event.
    textarea.addEventListener("input", () => {
      if (!this.isCopying && textarea.value !== view.state.doc.toString()) this.replaceText(textarea.value);
    });
    textarea.form?.addEventListener("reset", () => setTimeout(() => this.replaceText(textarea.value)));
  }

  replaceText(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  copySoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.copy(), COPY_DELAY);
  }

  // Copy the text into the textarea, if it has changed since the last time.
  copy() {
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = 0;
    this.isCopying = true;
    this.textarea.value = this.view.state.doc.toString();
    this.textarea.dispatchEvent(new Event("input", { bubbles: true }));
    this.isCopying = false;
    if (this.isJson) checkJson(this.textarea);
  }

  focus() {
    this.view.focus();
  }

  /** Move the cursor to a line and a column, which counts characters. */
  goTo(lineNumber, column = 1) {
    const { view } = this;
    const line = view.state.doc.line(Math.min(lineNumber, view.state.doc.lines));
    const position = line.from + [...line.text].slice(0, column - 1).join("").length;
    view.dispatch({ selection: { anchor: position }, effects: EditorView.scrollIntoView(position, { y: "center" }) });
    view.focus();
  }
}

/** Create the editors of the textareas that have none yet. */
function enhanceAll(root = document) {
  root.querySelectorAll("textarea[data-editor]").forEach((textarea) => {
    if (!editors.has(textarea)) editors.set(textarea, new TextareaEditor(textarea));
  });
}

// --- whatever reads the form must find the text of its editors

function copyAll() {
  for (const [textarea, editor] of editors) {
    if (textarea.isConnected) editor.copy();
    else editors.delete(textarea);
  }
}

const withModifier = (event) => event.ctrlKey || event.metaKey || event.altKey;
document.addEventListener("keydown", (event) => withModifier(event) && copyAll(), { capture: true });
for (const type of ["submit", "click", "session-expired", "visibilitychange"]) {
  document.addEventListener(type, copyAll, { capture: true });
}
for (const type of ["pagehide", "beforeunload"]) addEventListener(type, copyAll, { capture: true });

window.AgentEditor = { enhanceAll, of: (textarea) => editors.get(textarea) };

enhanceAll();
// htmx sends this event for each element that it adds to the page.
document.addEventListener("htmx:after:process", (event) => enhanceAll(event.target));
