"""Vectors in 8 bits per number."""

import numpy as np

from agentcms.vectors.quantize import PackedVector, pack_vector, similarity_scores, unpack_vector


def unit_rows(count, dimensions=512, seed=1):
    rows = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_packed_vector_has_a_byte_per_number_and_is_restored():
    row = unit_rows(1)[0]

    packed = pack_vector(row)

    assert len(packed.data) == 512
    np.testing.assert_allclose(unpack_vector(packed), row, atol=packed.scale / 2 + 1e-7)


def test_packed_vectors_give_the_same_best_results_as_floats():
    rows, queries = unit_rows(5000), unit_rows(20, seed=2)
    rows[:100] = queries.repeat(5, axis=0) + rows[:100] * 0.5  # a few that are similar
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scales, data = zip(*map(pack_vector, rows), strict=True)

    for query in queries:
        exact, approximate = rows @ query, similarity_scores(query[None], scales, data)
        assert {*np.argsort(-exact)[:5]} == {*np.argsort(-approximate)[:5]}
        np.testing.assert_allclose(approximate, exact, atol=0.01)


def test_the_score_of_several_queries_is_the_best_of_them():
    rows = unit_rows(3000)
    scales, data = zip(*map(pack_vector, rows), strict=True)

    best = similarity_scores(rows[[7, 2999]], scales, data)

    assert {*np.argsort(-best)[:2]} == {7, 2999}
    np.testing.assert_allclose(best, (rows @ rows[[7, 2999]].T).max(axis=1), atol=0.01)


def test_no_vectors_have_no_scores():
    assert similarity_scores(unit_rows(1), [], []).shape == (0,)


def test_a_vector_of_zeros_scores_zero():
    packed = pack_vector(np.zeros(4, np.float32))

    assert packed == PackedVector(1.0, bytes(4))
    assert similarity_scores(np.ones((1, 4), np.float32), [packed.scale], [packed.data]).tolist() == [0.0]


def test_no_score_is_above_one():
    rows = unit_rows(500, dimensions=3)
    scales, data = zip(*map(pack_vector, rows), strict=True)

    best = similarity_scores(rows, scales, data)

    assert best.max() <= 1
    assert best.min() > 0.99
