"""The data that a browser sends for a form, read from its HTML."""

import re
from html.parser import HTMLParser
from typing import Any

from django.http import QueryDict

UNSENT_TYPES = {"submit", "button", "reset", "image", "file"}


def form_data(html: str, scripts: bool = True) -> QueryDict:
    """Return the values of all inputs in a text of HTML. With scripts, <noscript> has none."""
    html = re.sub(r"<template.*?</template>", "", html, flags=re.DOTALL)
    if scripts:
        html = re.sub(r"<noscript>.*?</noscript>", "", html, flags=re.DOTALL)
    reader = FormReader()
    reader.feed(html)
    reader.close()
    data = QueryDict(mutable=True)
    for name, value in reader.values:
        data.appendlist(name, normalize(value))
    return data


def normalize(text: str) -> str:
    """Return a text with the line ends that browsers send."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


class FormReader(HTMLParser):
    """A reader of the inputs, textareas and selections of a page, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[tuple[str, str]] = []
        self.textarea: list[str] | None = None
        self.name = ""
        self.options: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        attrs: dict[str, Any] = {name: value or "" for name, value in attributes}
        if tag == "input" and attrs.get("name") and "disabled" not in attrs:
            self.read_input(attrs)
        elif tag == "textarea":
            self.textarea, self.name = [], attrs.get("name", "")
        elif tag == "select":
            self.name, self.options = attrs.get("name", ""), []
        elif tag == "option" and self.name:
            self.options.append((attrs.get("value", ""), "selected" in attrs))

    def read_input(self, attrs: dict[str, str]) -> None:
        kind = attrs.get("type", "text")
        if kind in UNSENT_TYPES or (kind in {"checkbox", "radio"} and "checked" not in attrs):
            return
        value = attrs.get("value", "on" if kind in {"checkbox", "radio"} else "")
        is_line = kind not in {"checkbox", "radio", "hidden"}
        self.values.append((attrs["name"], re.sub(r"[\r\n]", "", value) if is_line else value))

    def handle_data(self, data: str) -> None:
        if self.textarea is not None:
            self.textarea.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self.textarea is not None:
            text = "".join(self.textarea)
            if self.name:
                self.values.append((self.name, re.sub(r"\A\r?\n", "", text)))
            self.textarea, self.name = None, ""
        elif tag == "select":
            if self.name:
                chosen = [value for value, is_selected in self.options if is_selected]
                self.values.append((self.name, (chosen or [self.options[0][0]])[-1]))
            self.name = ""
