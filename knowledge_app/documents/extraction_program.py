"""A program that extracts the text of a PDF or HTML document. It runs in a process of its own, in a sandbox.

    python -I extraction_program.py pdf|html <most pages> <most characters> <most seconds> < document

It prints `{"pages": [text]}` or `{"error": message}`. Documents are not to be trusted: a library may loop or take all
memory, so the process limits itself, and its parent stops it after the same time.
"""

import io
import json
import resource
import sys

MAX_MEMORY = 1024 * 1024 * 1024  # bytes
MAX_DEPTH = 1000  # elements inside each other; for each end tag without a start, libxml2 looks at all of them
PIECE = 128 * 1024  # characters; for each piece, libxml2 looks again for the end of an open comment
SKIPPED = {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "select", "textarea"}
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = {"p", "div", "section", "article", "main", "aside", "header", "footer", "nav", "table", "tr"}
BLOCKS |= {"blockquote", "pre", "dl", "dt", "dd", "figure", "figcaption", "form", "fieldset", "hr", "title", "address"}
BLOCKS |= {"caption", "details", "summary", "legend"}
CELLS = {"td", "th"}
LISTS = {"ul", "ol"}
INDENTATION = " " * 4  # of an item of an inner list, and of code
MAX_INDENTATION = 10  # lists inside each other; deeper ones would only add blanks
SEPARATORS = {**dict.fromkeys(BLOCKS, "\n\n"), "br": "\n", **dict.fromkeys(CELLS, " ")}
UNREADABLE_MESSAGE = (
    "The document is damaged, or too complex to be read. Save it again with another program, or add it as plain text."
)


class DocumentRefused(Exception):
    """A document that cannot be read, with the reason for its reader. Not a ValueError, which libraries raise too."""


class TextOfHtml:
    """A target of lxml's parser that collects the visible text, with Markdown marks for headings and items of lists.

    Python's own parser takes hours for some documents of a megabyte, such as one of `<a ` without an end.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.depth = 0
        self.skipped_at = 0  # the depth of the element whose content is left out
        self.preformatted = 0
        self.cells: list[int] = []  # numbers of parts where the open cells of tables start
        self.item_numbers: list[int | None] = []  # of the last item of each open list, None in a list without numbers
        self.is_line_open = False  # an item or a cell has no text yet: a paragraph in it starts no new line

    def start(self, tag: str, attributes: object) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise DocumentRefused(f"The document has more than {MAX_DEPTH:,} elements inside each other. Simplify it.")
        if self.skipped_at:
            return
        if tag in SKIPPED:
            self.skipped_at = self.depth
        elif tag in HEADINGS:
            self.parts.append("\n\n" + "#" * HEADINGS[tag] + " ")
        elif tag in LISTS:
            self.start_list(tag)
        elif tag == "li":
            self.start_item()
        elif (separator := SEPARATORS.get(tag)) and not (self.is_line_open and tag in BLOCKS):
            self.parts.append(separator)
            self.is_line_open = tag in CELLS
        if tag in CELLS:
            self.cells.append(len(self.parts))
        self.preformatted += tag == "pre"

    def end(self, tag: str) -> None:
        if not self.skipped_at:
            self.preformatted -= tag == "pre"
            if tag in LISTS:
                self.end_list()
            elif tag in HEADINGS or tag in BLOCKS:
                self.parts.append("\n\n")
                self.is_line_open = False
            elif tag in CELLS:
                self.end_cell()
        elif self.depth == self.skipped_at:
            self.skipped_at = 0
        self.depth -= 1

    def start_list(self, tag: str) -> None:
        """Start a list. One inside an item continues its lines."""
        if not self.item_numbers:
            self.parts.append("\n\n")
        self.item_numbers.append(0 if tag == "ol" else None)

    def end_list(self) -> None:
        """End a list: its last line if it is inside an item, else its paragraph."""
        self.item_numbers[-1:] = []
        if self.item_numbers:
            self.end_line()
        else:
            self.parts.append("\n\n")
            self.is_line_open = False

    def start_item(self) -> None:
        """Start the line of an item, with its number in an ordered list and an indentation for each outer list."""
        mark = "- "
        if self.item_numbers and (last := self.item_numbers[-1]) is not None:
            self.item_numbers[-1] = last + 1
            mark = f"{last + 1}. "
        level = min(len(self.item_numbers) - 1, MAX_INDENTATION)
        self.end_line()
        self.parts.append(INDENTATION * level + mark)
        self.is_line_open = True

    def end_line(self) -> None:
        """End the line, unless nothing but blanks came after it."""
        while self.parts and self.parts[-1] == " ":
            self.parts.pop()
        if not (self.parts and self.parts[-1].endswith("\n")):
            self.parts.append("\n")
        self.is_line_open = False

    def end_cell(self) -> None:
        """Remove the blanks at the end of a cell. A paragraph ends there, and the next cell stays in the same line."""
        start = self.cells.pop()
        while len(self.parts) > start and self.parts[-1].isspace():
            self.parts.pop()
        self.is_line_open = False

    def data(self, text: str) -> None:
        if self.skipped_at:
            return
        words = " ".join(text.split())
        if self.preformatted:
            self.parts.append(text)
        elif words:
            starts_with_blank = text[0].isspace() and not self.is_line_open
            self.parts.append(words.join((" " * starts_with_blank, " " * text[-1].isspace())))
        elif not self.is_line_open:
            self.parts.append(" ")
        self.is_line_open &= not words

    def close(self) -> str:
        lines = [line.rstrip() for line in "".join(self.parts).splitlines()]
        single_blanks = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
        return "\n".join(line if line.startswith(INDENTATION) else line.lstrip() for line in single_blanks).strip()


def html_pages(content: bytes, max_characters: int) -> list[str]:
    from lxml import etree  # type: ignore[import-untyped]

    # Else comments of more than 10 MB would be text. What is large is stopped by the limits of this process.
    parser = etree.HTMLParser(target=TextOfHtml(), encoding="utf-8", huge_tree=True)
    text = content.decode("utf-8", "replace") or " "  # for lxml, no text at all is an error
    # In pieces: an error of the target ends the parser only at the end of a piece.
    for start in range(0, len(text), PIECE):
        parser.feed(text[start : start + PIECE].encode())
    text = parser.close()
    if len(text) > max_characters:
        raise DocumentRefused(f"The document has more than {max_characters:,} characters of text. Divide it.")
    return [text]


def pdf_pages(stream: io.BytesIO, max_pages: int, max_characters: int) -> list[str]:
    from pypdf import PdfReader

    reader = PdfReader(stream)
    # A PDF that only restricts printing has a blank password.
    if reader.is_encrypted and not reader.decrypt(""):
        raise DocumentRefused("The PDF needs a password. Save it without one and add it again.")
    if len(reader.pages) > max_pages:
        raise DocumentRefused(f"The PDF has more than {max_pages:,} pages. Divide it.")
    pages: list[str] = []
    for page in reader.pages:
        pages.append(page.extract_text() or "")
        max_characters -= len(pages[-1])
        if max_characters < 0:
            raise DocumentRefused("The PDF has too much text. Divide it.")
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
    except DocumentRefused as error:
        print(json.dumps({"error": str(error)}))
    except Exception:  # pypdf raises many kinds of errors for damaged files, and for those beyond its limits
        print(json.dumps({"error": UNREADABLE_MESSAGE}))
    else:
        print(json.dumps({"pages": pages}))


if __name__ == "__main__":
    main()
