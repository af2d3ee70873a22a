// CodeMirror over a <textarea data-editor="text"> or <textarea data-editor="json">.
//
// The textarea stays in the form and always holds the value, so a form works the same with and without this file.
// Built by scripts/vendor.py into static/vendor/codemirror/editor.js.

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

const editors = new WeakMap();

// Marks are classes: their colours stand in app.css, for both themes.
function marks(regexp, classOf) {
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

const variables = marks(/\{\{\s*[\w.-]+\s*\}\}/g, () => "editor-variable");
// A light reading of Markdown, line by line: a full grammar would weigh ten times as much and colour little more.
const headings = marks(/^#{1,6} .*$/g, () => "editor-heading");
const listMarks = marks(/^\s*(?:[-*+]|\d+[.)])(?= )/g, () => "editor-list-mark");
const emphasis = marks(/\*\*[^*\n]+\*\*|`[^`\n]+`/g, (match) => (match[0][0] === "`" ? "editor-code" : "editor-strong"));

const jsonColours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.propertyName, class: "editor-key" },
    { tag: tags.string, class: "editor-string" },
    { tag: [tags.number, tags.bool, tags.null], class: "editor-literal" },
    { tag: [tags.separator, tags.squareBracket, tags.brace], class: "editor-punctuation" },
  ]),
);

// An empty field means "nothing set"; it is not broken JSON.
const parseJson = jsonParseLinter();
const lintJson = linter((view) => (view.state.doc.toString().trim() ? parseJson(view) : []), { delay: 250 });

// Typing over a selection natively makes Chromium write an inline style for the colour that was there, which a strict
// policy reports. The editor replaces it itself.
const typeOverSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const typed = event.inputType === "insertText" && event.data && !event.isComposing;
    if (!typed || view.state.readOnly || view.state.selection.main.empty) return false;
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

const languages = {
  text: [variables, headings, listMarks, emphasis],
  json: [json(), jsonColours, bracketMatching(), foldGutter(), lintGutter(), lintJson, variables],
};

function nonce() {
  return document.querySelector('meta[name="csp-nonce"]')?.content || "";
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

/** Where JSON breaks, in the words the page shows: {line, column, message}, or null. */
export function jsonFault(text) {
  if (!text.trim()) return null;
  const state = EditorState.create({ doc: text });
  const [fault] = parseJson({ state });
  if (!fault) return null;
  const line = state.doc.lineAt(fault.from);
  const message = fault.message.replace(/^JSON\.parse: /, "").replace(/ (in JSON )?at (position|line) .*$/, "");
  return { line: line.number, column: fault.from - line.from + 1, message };
}

function reportFault(textarea) {
  const fault = jsonFault(textarea.value);
  const sentence = fault ? `Line ${fault.line}, column ${fault.column}: ${fault.message}.` : "";
  // Only this field blocks the form, and the browser says why beside it.
  textarea.setCustomValidity(sentence);
  textarea.dispatchEvent(new CustomEvent("json-checked", { bubbles: true, detail: { fault, sentence } }));
}

/** Put an editor over a textarea; calling it again returns the same editor. */
export function enhance(textarea) {
  if (editors.has(textarea)) return editors.get(textarea);
  const isJson = textarea.dataset.editor === "json";
  let writing = false;

  const onChange = EditorView.updateListener.of((update) => {
    if (!update.docChanged) return;
    writing = true;
    textarea.value = update.state.doc.toString();
    textarea.dispatchEvent(new Event("input", { bubbles: true }));
    writing = false;
    if (isJson) reportFault(textarea);
  });

  const view = new EditorView({
    state: EditorState.create({
      doc: textarea.value,
      extensions: [
        EditorView.cspNonce.of(nonce()),
        lineNumbers(),
        highlightActiveLineGutter(),
        highlightActiveLine(),
        highlightSpecialChars(),
        history(),
        drawSelection(),
        search({ top: true }),
        highlightSelectionMatches(),
        EditorView.lineWrapping,
        typeOverSelection,
        EditorState.readOnly.of(textarea.readOnly || textarea.disabled),
        EditorState.tabSize.of(2),
        EditorView.contentAttributes.of(contentAttributes(textarea)),
        // Tab moves on to the next field, as it does everywhere else on the page.
        keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, ...lintKeymap, ...foldKeymap]),
        languages[textarea.dataset.editor] || languages.text,
        onChange,
      ],
    }),
  });

  const frame = document.createElement("div");
  frame.className = "editor";
  frame.dataset.kind = textarea.dataset.editor;
  frame.append(view.dom);
  textarea.after(frame);
  textarea.classList.add("visually-hidden");
  textarea.tabIndex = -1;
  textarea.setAttribute("aria-hidden", "true");

  textarea.addEventListener("focus", () => view.focus());
  textarea.labels?.forEach((label) => label.addEventListener("click", () => view.focus()));
  // Whoever writes the textarea from outside (recovery, a chip that inserts a variable) sends an input event.
  textarea.addEventListener("input", () => {
    if (!writing && textarea.value !== view.state.doc.toString()) replace(view, textarea.value);
  });
  textarea.form?.addEventListener("reset", () => setTimeout(() => replace(view, textarea.value)));
  if (isJson) reportFault(textarea);

  const editor = {
    view,
    focus: () => view.focus(),
    insert: (text) => view.dispatch(view.state.replaceSelection(text)),
    goTo: (line, column = 1) => goTo(view, line, column),
  };
  editors.set(textarea, editor);
  return editor;
}

function replace(view, text) {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
}

function goTo(view, lineNumber, column) {
  const line = view.state.doc.line(Math.min(lineNumber, view.state.doc.lines));
  const position = Math.min(line.from + column - 1, line.to);
  view.dispatch({ selection: { anchor: position }, effects: EditorView.scrollIntoView(position, { y: "center" }) });
  view.focus();
}

/** Enhance every marked textarea inside root. */
export function enhanceAll(root = document) {
  root.querySelectorAll("textarea[data-editor]").forEach(enhance);
}

enhanceAll();
// htmx fires this for each part that it puts into the page.
document.addEventListener("htmx:after:process", (event) => enhanceAll(event.target));
