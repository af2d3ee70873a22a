"""WordPiece tokens. The expected numbers are those of the package `tokenizers` with the tokenizer of the model."""

import pytest

from agentcms.vectors.wordpiece import load_vocabulary, token_ids

BEGIN, END = 101, 102
TEXTS = [
    ("Hello, world!", [7592, 1010, 2088, 999]),
    ("unaffable embeddings", [14477, 20961, 3468, 7861, 8270, 4667, 2015]),
    ("Café Zürich — naïve façade", [7668, 10204, 1517, 15743, 8508]),
    ("東京 tower", [1879, 1755, 3578]),
    ("x\x00y\u200bz\ttab", [1060, 2100, 2480, 21628]),
    (
        "e-mail: ann@example.org (2024)",
        [1041, 1011, 5653, 1024, 5754, 1030, 2742, 1012, 8917, 1006, 16798, 2549, 1007],
    ),
    ("ẞtraße 😀", [1096, 6494, 17499, 100]),
    ("a" * 101 + " b", [100, 1038]),
    ("", []),
    ("don't_stop $5.99", [2123, 1005, 1056, 1035, 2644, 1002, 1019, 1012, 5585]),
]


@pytest.mark.parametrize(("text", "numbers"), TEXTS)
def test_a_text_has_the_tokens_with_which_the_model_was_trained(text, numbers):
    assert token_ids(text, 256) == [BEGIN, *numbers, END]


def test_a_long_text_is_cut():
    numbers = token_ids("word " * 1000, 256)

    assert (len(numbers), numbers[0], numbers[-1]) == (256, BEGIN, END)


def test_the_vocabulary_is_whole():
    vocabulary = load_vocabulary()

    assert (len(vocabulary), vocabulary["[PAD]"], vocabulary["[CLS]"], vocabulary["##～"]) == (30522, 0, 101, 30521)
