// The search panel of an editor, loaded when somebody opens it for the first time.

import { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search";
import { StateEffect } from "@codemirror/state";
import { keymap } from "@codemirror/view";

const extensions = [search({ top: true }), highlightSelectionMatches(), keymap.of(searchKeymap)];
const prepared = new WeakSet();

export function openSearch(view) {
  if (!prepared.has(view)) view.dispatch({ effects: StateEffect.appendConfig.of(extensions) });
  prepared.add(view);
  openSearchPanel(view);
}
