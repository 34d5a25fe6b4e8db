"""A fair division: every class on both sides, texts never on both, and the same every time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from weft.data import class_weights, grouped_split, stratified_split
from weft.errors import ConfigError, DataError, ShapeError


@settings(deadline=None, max_examples=150)
@given(
    labels=st.lists(st.integers(0, 6), min_size=2, max_size=80),
    share=st.sampled_from([0.05, 0.1, 0.3, 0.5, 0.9]),
    seed=st.integers(0, 9),
)
def test_every_class_on_both_sides(labels, share, seed):
    labels = np.array(labels)
    train, validation = stratified_split(labels, share, seed)
    assert np.array_equal(np.sort(np.concatenate([train, validation])), np.arange(len(labels)))
    assert np.array_equal(train, np.sort(train)) and np.array_equal(validation, np.sort(validation))
    alone = [(labels == label).sum() < 2 for label in set(labels)]
    for label in set(labels):
        count = (labels == label).sum()
        held = (labels[validation] == label).sum()
        if count >= 2:
            assert 1 <= held < count
            assert held == min(max(round(share * count), 1), count - 1) or abs(held - share * count) <= 1
        elif not all(alone):
            assert held == 0, "what cannot be on both sides is learned"


@settings(deadline=None, max_examples=150)
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=2, max_size=60), seed=st.integers(0, 5))
def test_equal_texts_never_straddle(rows, seed):
    texts = [f"{label} {text}" for label, text in rows]
    labels = [label for label, _ in rows]
    if len(set(texts)) < 2:
        with pytest.raises(DataError, match="different texts"):
            stratified_split(labels, 0.2, seed, groups=texts)
        return
    train, validation = stratified_split(labels, 0.2, seed, groups=texts)
    assert len(train) + len(validation) == len(rows) and len(train) and len(validation)
    assert not {texts[place] for place in train} & {texts[place] for place in validation}
    for label in set(labels):
        if len({text for text, own in zip(texts, labels, strict=True) if own == label}) >= 2:
            sides = [{labels[place] for place in side} for side in (train, validation)]
            assert label in sides[0] and label in sides[1]


def test_without_groups_they_do_straddle():
    texts, labels = ["same"] * 50 + ["other"] * 50, [0] * 50 + [1] * 50
    train, validation = stratified_split(labels, 0.2, 0)
    assert {texts[place] for place in train} & {texts[place] for place in validation}


def test_contradicting_labels_stay_together():
    rng = np.random.default_rng(0)
    texts, labels = rng.integers(0, 100, 400).tolist(), rng.integers(0, 3, 400)
    train, validation = stratified_split(labels, 0.2, 1, groups=texts)
    assert not {texts[place] for place in train} & {texts[place] for place in validation}
    assert abs(len(validation) - 80) <= 8
    assert all(set(labels[side]) == {0, 1, 2} for side in (train, validation))


def test_it_is_a_pure_function():
    labels = np.random.default_rng(0).integers(0, 5, 500)
    first = stratified_split(labels, 0.2, 3)
    np.random.seed(1)
    again = stratified_split(labels.tolist(), 0.2, 3)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    as_words = stratified_split([f"class {label}" for label in labels], 0.2, 3)
    assert np.array_equal(first[1], as_words[1])
    held = [stratified_split(labels, 0.2, seed)[1] for seed in range(5)]
    assert len({tuple(part) for part in held}) == 5
    assert abs(len(first[1]) - 100) <= 5


def test_the_choice_is_not_the_beginning():
    validation = np.concatenate([stratified_split([0] * 100 + [1] * 100, 0.2, seed)[1] % 100 for seed in range(30)])
    assert abs(validation.mean() - 49.5) < 5 and len(set(validation)) > 90


def test_numbers_by_quantiles():
    values = np.random.default_rng(0).exponential(size=1000)
    validation = stratified_split(values, 0.1, 0)[1]
    assert len(validation) == 100
    ranks = np.argsort(np.argsort(values))
    assert (np.bincount(ranks[validation] // 100, minlength=10) == 10).all()
    assert len(stratified_split(values[:20], 0.1, 0)[1]) == 2, "few examples are few bins"
    assert len(stratified_split(np.ones(30), 0.1, 0)[1]) == 3


def test_several_labels():
    rng = np.random.default_rng(0)
    rows = (rng.random((600, 4)) < [0.5, 0.2, 0.05, 0.01]).astype(np.float32)
    train, validation = stratified_split(rows, 0.2, 0)
    assert abs(len(validation) - 120) < 15
    shares = rows[validation].sum(axis=0) / rows.sum(axis=0)
    assert (abs(shares - 0.2) < 0.1).all() and (rows[train].sum(axis=0) > 0).all()


def test_what_cannot_be_divided():
    with pytest.raises(DataError):
        stratified_split([1], 0.5, 0)
    for share in (0, 1, -0.1, 1.5):
        with pytest.raises(ConfigError, match="share"):
            stratified_split([0, 1], share, 0)
    with pytest.raises(ShapeError, match="3 groups for 2 labels"):
        stratified_split([0, 1], 0.5, 0, groups="abc")
    train, validation = stratified_split(["a", "b", "c"], 0.3, 0)
    assert len(train) == 2 and len(validation) == 1, "each class alone: still two parts"


def test_class_weights_are_those_of_scikit_learn():
    ids = np.random.default_rng(0).choice(4, size=300, p=[0.7, 0.2, 0.07, 0.03])
    weights = class_weights(ids)
    assert np.allclose(weights, compute_class_weight("balanced", classes=np.arange(4), y=ids))
    assert np.isclose(weights[ids].mean(), 1) and np.argmax(weights) == 3
    assert class_weights([0, 0, 2], classes=4).tolist() == [0.75, 0, 1.5, 0]
    with pytest.raises(ShapeError):
        class_weights(np.eye(2))


@settings(deadline=None, max_examples=80)
@given(groups=st.lists(st.integers(0, 15), min_size=2, max_size=60), most=st.integers(1, 20), seed=st.integers(0, 5))
def test_groups_stay_together_and_not_too_many_are_held_out(groups, most, seed):
    if len(set(groups)) < 2:
        with pytest.raises(DataError, match="different texts"):
            grouped_split(groups, most, seed)
        return
    train, validation = grouped_split(groups, most, seed)
    assert np.array_equal(np.sort(np.concatenate([train, validation])), np.arange(len(groups)))
    assert len(train) and len(validation)
    assert not {groups[place] for place in train} & {groups[place] for place in validation}
    smallest = min(groups.count(group) for group in groups)
    assert len(validation) <= max(most, smallest)
    assert all(
        np.array_equal(*same) for same in zip((train, validation), grouped_split(groups, most, seed), strict=True)
    )


def test_a_grouped_split_is_full_and_comes_from_everywhere():
    train, validation = grouped_split(range(10_000), 1000, seed=0)
    assert (len(train), len(validation)) == (9000, 1000)
    assert validation.mean() == pytest.approx(5000, rel=0.1)
    assert not np.array_equal(validation, grouped_split(range(10_000), 1000, seed=1)[1])
