"""A program that extracts the text of a PDF or HTML document. It runs in a process of its own, in a sandbox.

    python -I extraction_program.py pdf|html <most pages> <most characters> <most seconds> < document

It prints `{"pages": [text]}` or `{"error": message}`. Documents are not to be trusted: a library may loop or take all
memory, so the process limits itself, and its parent stops it after the same time.
"""

import io
import json
import resource
import sys
from html.parser import HTMLParser

MAX_MEMORY = 1024 * 1024 * 1024  # bytes
SKIPPED = {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "select", "textarea"}
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = {"p", "div", "section", "article", "main", "aside", "header", "footer", "nav", "table", "tr", "ul", "ol"}
BLOCKS |= {"blockquote", "pre", "dl", "dt", "dd", "figure", "figcaption", "form", "fieldset", "hr", "title", "address"}


class TextOfHtml(HTMLParser):
    """A parser that collects the visible text, with Markdown marks for headings and items of lists."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.skipping = ""
        self.skip_depth = 0
        self.preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.skipping:
            self.skip_depth += tag == self.skipping
        elif tag in SKIPPED:
            self.skipping, self.skip_depth = tag, 1
        elif tag in HEADINGS:
            self.parts.append("\n\n" + "#" * HEADINGS[tag] + " ")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag == "br":
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" ")
        elif tag in BLOCKS:
            self.parts.append("\n\n")
        self.preformatted += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if self.skipping:
            self.skip_depth -= tag == self.skipping
            if self.skip_depth <= 0:
                self.skipping = ""
        elif tag in HEADINGS or tag in BLOCKS:
            self.parts.append("\n\n")
        if tag == "pre" and self.preformatted:
            self.preformatted -= 1

    def handle_data(self, data: str) -> None:
        if not self.skipping:
            blank_at_ends = (" " if data[:1].isspace() else "", " " if data[-1:].isspace() else "")
            words = " ".join(data.split())
            self.parts.append(data if self.preformatted else words.join(blank_at_ends) if words else " ")

    def text(self) -> str:
        lines = [line.rstrip() for line in "".join(self.parts).splitlines()]
        single_blanks = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
        return "\n".join(line if line.startswith("    ") else line.lstrip() for line in single_blanks).strip()


def html_pages(content: bytes, max_characters: int) -> list[str]:
    parser = TextOfHtml()
    parser.feed(content.decode("utf-8", "replace"))
    parser.close()
    text = parser.text()
    if len(text) > max_characters:
        raise ValueError(f"The document has more than {max_characters:,} characters of text. Divide it.")
    return [text]


def pdf_pages(stream: io.BytesIO, max_pages: int, max_characters: int) -> list[str]:
    from pypdf import PdfReader

    reader = PdfReader(stream)
    # A PDF that only restricts printing has a blank password.
    if reader.is_encrypted and not reader.decrypt(""):
        raise ValueError("The PDF needs a password. Save it without one and add it again.")
    if len(reader.pages) > max_pages:
        raise ValueError(f"The PDF has more than {max_pages:,} pages. Divide it.")
    pages: list[str] = []
    for page in reader.pages:
        pages.append(page.extract_text() or "")
        max_characters -= len(pages[-1])
        if max_characters < 0:
            raise ValueError("The PDF has too much text. Divide it.")
    return pages


def main() -> None:
    kind, *numbers = sys.argv[1:]
    max_pages, max_characters, seconds = map(int, numbers)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    try:
        if kind == "html":
            pages = html_pages(sys.stdin.buffer.read(), max_characters)
        else:
            pages = pdf_pages(io.BytesIO(sys.stdin.buffer.read()), max_pages, max_characters)
    except ValueError as error:
        print(json.dumps({"error": str(error)}))
    except Exception as error:  # pypdf raises many kinds of errors for damaged files
        print(json.dumps({"error": f"The document is damaged: {type(error).__name__}."}))
    else:
        print(json.dumps({"pages": pages}))


if __name__ == "__main__":
    main()
