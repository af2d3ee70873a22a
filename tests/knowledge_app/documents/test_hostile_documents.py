"""Documents that were made to exhaust memory or time: each fails with a reason, and the worker goes on."""

import io
import resource
import time
import zlib

import pytest

from knowledge_app.documents import extraction
from knowledge_app.documents.chunking import MAX_PART_LENGTH, split_into_parts, split_text
from knowledge_app.documents.errors import DocumentError
from knowledge_app.documents.extraction import extract_text
from knowledge_app.documents.media_types import CSV, HTML, MARKDOWN, PDF, TEXT, media_type_of
from tools_app.programs.sandbox import is_sandbox_available

MEGABYTE = 1024 * 1024


def pdf(content, *, pages=1, page_entries=b""):
    """Return a PDF whose pages show the same compressed stream."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>"]
    kids = b" ".join(b"%d 0 R" % (number + 5) for number in range(pages))
    objects.append(b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, kids))
    objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    packed = zlib.compress(content, 9)
    objects.append(b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(packed), packed))
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 3 0 R>>>>%s>>"
    objects += [page % page_entries] * pages
    file, offsets = io.BytesIO(), []
    file.write(b"%PDF-1.7\n")
    for number, body in enumerate(objects, 1):
        offsets.append(file.tell())
        file.write(b"%d 0 obj%s\nendobj\n" % (number, body))
    start = file.tell()
    file.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    file.write(b"".join(b"%010d 00000 n \n" % offset for offset in offsets))
    file.write(b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))
    return file.getvalue()


def refusal(content, media_type):
    with pytest.raises(DocumentError) as error:
        extract_text(content, media_type)
    return str(error.value)


def test_a_plain_pdf_is_read_by_page():
    extracted = extract_text(pdf(b"BT /F 12 Tf (Port eighty) Tj ET", pages=2), PDF)

    assert extracted.text.split() == ["Port", "eighty"] * 2
    assert [place for _, place in extracted.sections] == ["Page 1", "Page 2"]


def test_a_pdf_that_unpacks_to_gigabytes_is_stopped():
    bomb = pdf(b" " * (400 * MEGABYTE))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    message = refusal(bomb, PDF)

    assert len(bomb) < MEGABYTE
    assert message.endswith(".")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024  # in kB; the bomb is in a child


def test_a_pdf_whose_work_has_no_end_is_stopped_in_time(settings):
    settings.KNOWLEDGE_EXTRACTION_TIMEOUT = 1
    endless = pdf(b"BT /F 12 Tf " + b"(word) Tj 0 1 Td " * 300_000 + b"ET", pages=50)

    assert refusal(endless, PDF) == extraction.STOPPED_MESSAGE.format(seconds=1)


def test_a_pdf_with_too_many_pages_is_refused(settings):
    settings.KNOWLEDGE_MAX_PAGES = 3

    assert refusal(pdf(b"", pages=4), PDF) == "The PDF has more than 3 pages. Divide it."


@pytest.mark.parametrize("content", [
    b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 1 0 R/Kids[1 0 R]>>endobj\ntrailer<</Root 1 0 R>>\n",
    b"%PDF-1.7\n" + b"[" * 100_000,
    b"%PDF-1.7\n" + b"<<" * 100_000 + b">>" * 100_000,
    pdf(b"BT ET", page_entries=b"/Parent 5 0 R"),
])  # fmt: skip
def test_a_damaged_or_circular_pdf_fails_with_a_reason(content):
    assert refusal(content, PDF).endswith(".")


def test_an_error_of_the_library_is_not_the_reason():
    damaged = pdf(b"BT ET").replace(b"/Root 1 0 R>>", b"/Root 1 0 R/Prev -109>>")

    assert refusal(damaged, PDF).startswith("The document is damaged, or too complex to be read. Save it again")


@pytest.mark.parametrize("content", [
    b"<div>" * 900 + b"Port eighty" + b"</p>" * 500_000,
    b"<p>Port eighty" + b"<!--" * 2_600_000,
    b"<p>Port eighty" + b"<a " * 500_000,
    b"<p>Port eighty" + b"<a x='" * 500_000,
    b"<p>Port eighty" + b"</a/" * 500_000,
    b"<p>Port eighty" + b"<b id=1><p>" * 400,
    b"<p>Port eighty</p>" + b"&" * 500_000,
    b"<script>" * 1000 + b"steal()" + b"</script>" * 1000 + b"<p>Port eighty",
    b"<!DOCTYPE x [<!ENTITY a 'aaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]><p>Port eighty &b;&b;",
])  # fmt: skip
def test_hostile_html_is_read_or_stopped(content, settings):
    settings.KNOWLEDGE_EXTRACTION_TIMEOUT = 10

    text = extract_text(content, HTML).text

    assert "Port eighty" in text
    assert "steal" not in text
    assert "aaaa" not in text


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\r\n", b"<!-- draft -->", b"<script>steal()</script>"])
def test_html_without_text_is_refused_as_such(content):
    assert refusal(content, HTML) == extraction.EMPTY_MESSAGE


@pytest.mark.parametrize("content", [b"<div>" * 500_000, b"<div></p>" * 300_000, b"<b></i>" * 300_000])
def test_html_of_too_many_nested_elements_is_refused_soon(content, settings):
    settings.KNOWLEDGE_EXTRACTION_TIMEOUT = 10

    assert refusal(content, HTML) == "The document has more than 1,000 elements inside each other. Simplify it."


@pytest.mark.parametrize(
    ("text", "passages"), [("# Open\n\n# Close", ["# Open", "# Close"]), ("# A\n\nBe brief.", ["Be brief."])]
)
def test_a_text_of_headings_alone_is_found_by_them(text, passages):
    assert [passage.text for passage in split_text(text, MARKDOWN, [], size=9, overlap=0)] == passages


def test_the_marks_of_a_block_of_code_are_no_passage():
    lines = "\n".join(f"value_{number} = {number}" for number in range(40))
    text = f"Assign the values:\n\n```python\n{lines}\n```\n\n---\n\nThen add them."

    passages = [passage.text for passage in split_text(text, MARKDOWN, [], size=300, overlap=0)]

    assert "```python" not in passages
    assert passages[0] == "Assign the values:"
    assert passages[-1].endswith("Then add them.")


def test_a_text_of_headings_has_a_limited_number_of_places():
    text = f"# {'x' * 180}\n" + "## a\n" * 500_000

    extracted = extract_text(text.encode(), MARKDOWN)

    assert len(extracted.sections) == extraction.MAX_SECTIONS


@pytest.mark.parametrize("name", ["archive.zip", "report.docx", "noname"])
@pytest.mark.parametrize(
    "content", [b"PK\x03\x04" + b"\0" * 100, b"PK\x03\x04", b"\xff\xd8\xff\xe0", b"{\\rtf1 Text}", "\x89PNG".encode()]
)
def test_archives_and_unknown_files_are_refused(name, content):
    with pytest.raises(DocumentError, match="cannot be read"):
        media_type_of(name, content)


@pytest.mark.parametrize("name", ["data.json", "Makefile", "app.yaml", "server.log", "main.rs", ".env", "a.b c"])
@pytest.mark.parametrize("declared", ["", "application/octet-stream", "application/json", "image/png"])
def test_any_file_in_utf_8_is_text(name, declared):
    assert media_type_of(name, "port: 80 \x1b[1mü\x1b[0m\n".encode(), declared) == TEXT


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("https://sights.example.md", TEXT),
        ("https://sights.example.md/", TEXT),
        ("https://sights.example.md?page=2", TEXT),
        ("https://docs.example.com/readme.md#install", MARKDOWN),
        ("https://docs.example.com/README.MD?raw=1", MARKDOWN),
    ],
)
def test_the_format_of_a_url_is_that_of_its_path(name, media_type):
    assert media_type_of(name, b"Sights of the city.", "text/plain; charset=utf-8") == media_type


def test_html_that_begins_with_a_byte_order_mark_is_recognized():
    assert media_type_of("page", b"\xef\xbb\xbf<!DOCTYPE html><p>Port eighty</p>") == HTML


def test_every_chunk_of_a_csv_file_names_the_columns():
    text = "sku,name,price\n" + "".join(f"A{number},kettle {number},{number}\n" for number in range(100))

    extracted = extract_text(text.encode(), media_type_of("prices.csv", text.encode()))
    passages = [*split_text(extracted.text, CSV, extracted.sections, size=300, overlap=0)]

    assert len(passages) > 3
    assert {passage.place for passage in passages} == {"Columns: sku,name,price"}


def test_another_file_with_the_name_of_a_pdf_is_refused_as_such():
    with pytest.raises(DocumentError, match="is not a PDF"):
        media_type_of("page.pdf", b"PK\x03\x04" + b"\0" * 100)


ESCAPED = """
import json, os, sys
try:
    text = open(sys.argv[0].rpartition("/")[0] + "/../secret.txt").read()
except OSError as error:
    text = type(error).__name__
print(json.dumps({"pages": [text, " ".join(os.environ)]}))
"""


def test_a_document_that_takes_over_its_reader_sees_neither_files_nor_secrets(settings, tmp_path, monkeypatch):
    """A program in place of the reader does what a fault in a library for PDF would allow."""
    monkeypatch.setenv("SECRET_KEY", "hush")
    monkeypatch.setattr(extraction, "PROGRAM", tmp_path / "reader" / "reader.py")
    extraction.PROGRAM.parent.mkdir()
    extraction.PROGRAM.write_text(ESCAPED)
    (tmp_path / "secret.txt").write_text("hush")

    file, environment = extraction.run_program("pdf", b"")

    assert file == ("FileNotFoundError" if is_sandbox_available() else "hush")
    assert "SECRET_KEY" not in environment.split()


@pytest.mark.parametrize("media_type", [MARKDOWN, TEXT])
@pytest.mark.parametrize(
    "text",
    ["a" + "\n" * 30_000, "\N{LINE SEPARATOR}" * 10_000 + "a", "a" + " \n" * 10_000 + "b", "x" * 1_200_000],
    ids=["trailing lines", "separators", "blank lines", "one word"],
)
def test_the_division_of_a_hostile_text_takes_linear_time(text, media_type):
    started = time.process_time()

    passages = [*split_text(text, media_type, [], size=1000, overlap=100)]

    assert time.process_time() - started < 6
    assert all(text[passage.start : passage.end] == passage.text for passage in passages)
    assert {*text.split()} <= {passage.text for passage in passages} or len(passages) > 1200


def test_a_long_text_is_divided_at_its_paragraphs():
    paragraph = "The router has the port eighty. " * 10
    text = "\n\n".join(f"{number}: {paragraph}" for number in range(1000))

    parts = [*split_into_parts(text)]

    assert "".join(part for _, part in parts) == text
    assert [text[start : start + len(part)] for start, part in parts] == [part for _, part in parts]
    assert max(len(part) for _, part in parts) <= MAX_PART_LENGTH
    assert all(part.endswith("\n\n") for _, part in parts[:-1])
