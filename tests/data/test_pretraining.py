"""Pretraining examples: hidden tokens in the right numbers, pairs that are what their labels say, all by number."""

import re

import numpy as np
import pytest

from fixtures.numbered_sentences import CLS, FIRST_ID, MASK, SEP, make_marks, make_sentences
from weft.data import LabelledPairs, Marks, Masking, PretrainingSamples, Sentences, tokenise_sentences
from weft.data.pretraining import TASKS
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.text import Corpus, TokenizerConfig

TEXT = make_sentences()
SIZE = FIRST_ID + len(TEXT.ids)
MARKS = make_marks(SIZE)
PAIRS = LabelledPairs(
    ids=np.arange(FIRST_ID, FIRST_ID + 90).astype(np.uint32),
    words=np.ones(90, dtype=bool),
    parts=np.array([0, 4, 9, 12, 30, 70, 90]),
    labels=np.array([0, 1, 2]),
    classes=("yes", "no", "maybe"),
)
SENTENCE_OF = np.repeat(np.arange(len(TEXT)), np.diff(TEXT.sentences))
DOCUMENT_OF = np.repeat(np.arange(TEXT.document_count), np.diff(TEXT.documents))[SENTENCE_OF]


def split_row(row):
    """Each text of a row: sample number, first text, second text (or None), hidden put back."""
    whole = row.tokens.copy()
    whole[row.places] = row.targets
    at = 0
    for number, length in zip(row.numbers.tolist(), row.lengths.tolist(), strict=True):
        ids, segments = whole[at : at + length], row.segments[at : at + length]
        at += length
        assert ids[0] == CLS and ids[-1] == SEP and segments[0] == 0
        assert (np.diff(segments) >= 0).all()
        marks = np.flatnonzero(ids == SEP).tolist()
        if segments[-1] == 0:
            assert len(marks) == 1
            yield number, ids[1:-1], None
        else:
            cut = marks[0]
            assert marks == [cut, length - 1] and not segments[: cut + 1].any() and segments[cut + 1 :].all()
            yield number, ids[1:cut], ids[cut + 1 : -1]


def read_labels(row, question):
    places, answers = row.questions[question]
    return dict(zip(row.numbers[places].tolist(), answers.tolist(), strict=True))


def samples(*tasks, length=64, seed=0, text=TEXT, pairs=None, **masking):
    pairs = PAIRS if pairs is None and "entailment" in tasks else pairs
    known = make_marks(max(SIZE, FIRST_ID + len(text.ids)))
    return PretrainingSamples(text, known, length, tasks=tasks, seed=seed, masking=Masking(**masking), pairs=pairs)


def several(made, epochs=3):
    return made.batch(np.arange(epochs * made.per_epoch))


def sentence(ids):
    return SENTENCE_OF[np.asarray(ids) - FIRST_ID]


def document(ids):
    return set(DOCUMENT_OF[np.asarray(ids) - FIRST_ID].tolist())


def consecutive(ids):
    return (np.diff(ids) == 1).all()


# -- one text ---------------------------------------------------------------------------------


def test_an_epoch_of_masked_tokens_reads_the_text_once():
    made = samples("masked")
    found = [a for _, a, b in split_row(made.batch(np.arange(made.per_epoch)))]
    assert sorted(np.concatenate(found).tolist()) == TEXT.ids.tolist()
    for ids in found:
        assert consecutive(ids) and len(document(ids)) == 1 and len(ids) <= 62
    again = made.batch(np.arange(made.per_epoch) + made.per_epoch)
    assert sorted(again.lengths.tolist()) == sorted(len(ids) + 2 for ids in found)


def test_stretches_are_as_long_as_they_can_be():
    for _, ids, _ in split_row(several(samples("masked"), 1)):
        after = ids[-1] - FIRST_ID + 1
        starts = ids[0] - FIRST_ID in TEXT.sentences
        ends = after in TEXT.sentences
        assert starts and ends
        if after < len(TEXT.ids) and DOCUMENT_OF[after] == DOCUMENT_OF[ids[-1] - FIRST_ID]:
            following = TEXT.sentences[np.searchsorted(TEXT.sentences, after, "right")]
            assert len(ids) + following - after > 62


def test_a_sentence_longer_than_the_room_is_cut_in_equal_parts():
    long = make_sentences(3, sentences=(2, 3), tokens=(100, 101))
    found = [a for _, a, _ in split_row(several(samples("masked", length=42, text=long), 1))]
    assert sorted(np.concatenate(found).tolist()) == long.ids.tolist()
    assert {len(ids) for ids in found} <= {33, 34}


# -- hiding -----------------------------------------------------------------------------------


def outcomes(row, whole):
    """Of the hidden tokens: how many are masks, others, and as they were."""
    now = row.tokens[row.places]
    return np.array([(now == MASK).mean(), ((now != MASK) & (now != row.targets)).mean(), (now == row.targets).mean()])


@pytest.mark.parametrize("whole_words", [False, True])
def test_the_shares_are_as_asked(whole_words):
    row = several(samples("masked", "sentence-order", whole_words=whole_words), 60)
    ordinary = len(row.tokens) - 3 * len(row.numbers)
    assert abs(len(row.places) / ordinary - 0.15) < 0.005
    assert np.abs(outcomes(row, row.tokens) - [0.8, 0.1, 0.1]).max() < 0.01
    half = several(samples("masked", whole_words=whole_words, share=0.5), 20)
    assert abs(len(half.places) / (len(half.tokens) - 2 * len(half.numbers)) - 0.5) < 0.01


def test_another_share_would_be_noticed():
    row = several(samples("masked", share=0.2), 60)
    assert abs(len(row.places) / len(row.tokens) - 0.15) > 0.02


@pytest.mark.parametrize("tasks", [("masked",), TASKS], ids=["masked", "all"])
def test_marks_are_never_hidden_and_every_text_has_a_gap(tasks):
    row = several(samples(*tasks, length=24), 10)
    assert (row.targets >= FIRST_ID).all() and (np.diff(row.places) > 0).all()
    where = np.repeat(np.arange(len(row.numbers)), row.lengths)
    assert len(np.unique(where[row.places])) == len(row.numbers)
    untouched = np.ones(len(row.tokens), dtype=bool)
    untouched[row.places] = False
    assert not (row.tokens[untouched] == MASK).any()
    replaced = row.tokens[row.places]
    assert not np.isin(replaced, [CLS, SEP]).any() and ((replaced >= FIRST_ID) | (replaced == MASK)).all()


def test_every_place_is_hidden_alike():
    made = samples("masked", length=40)
    counts, seen = np.zeros(40), np.zeros(40)
    row = several(made, 80)
    starts = np.repeat(np.cumsum(row.lengths) - row.lengths, row.lengths)
    place = np.arange(len(row.tokens)) - starts
    np.add.at(seen, place, 1)
    np.add.at(counts, place[row.places], 1)
    share = counts[1:30] / seen[1:30]
    assert np.abs(share - 0.15).max() < 0.04 and counts[0] == 0


def split_words(row):
    """Words of which some tokens are hidden and some are not."""
    hidden = np.zeros(len(row.tokens), dtype=bool)
    hidden[row.places] = True
    whole = row.tokens.copy()
    whole[row.places] = row.targets
    text = whole >= FIRST_ID
    begins = np.ones(len(whole), dtype=bool)
    begins[text] = TEXT.words[whole[text] - FIRST_ID]
    begins[1:] |= ~text[:-1]
    word = np.cumsum(begins) - 1
    size, found = np.bincount(word), np.bincount(word, weights=hidden)
    return int(((found > 0) & (found < size)).sum()), int((found > 1).sum())


def test_whole_words_are_hidden_whole():
    broken, long = split_words(several(samples("masked", whole_words=True), 5))
    assert broken == 0 and long > 50
    assert split_words(several(samples("masked"), 5))[0] > 50  # a negative control


def test_another_epoch_hides_others_and_another_seed_too():
    made = samples("masked")
    sets = []
    for row in (made.batch(np.arange(made.per_epoch) + e * made.per_epoch) for e in range(2)):
        sets.append(set(row.targets.tolist()))
    sets.append(set(several(samples("masked", seed=1), 1).targets.tolist()))
    for a, b in ((0, 1), (0, 2)):
        assert len(sets[a] & sets[b]) < 0.3 * len(sets[a])


def test_a_token_that_stands_for_no_text_is_not_hidden():
    unknown = FIRST_ID + 5
    known = make_marks(SIZE)
    known.ordinary[unknown] = False
    made = PretrainingSamples(TEXT, known, 64, masking=Masking(share=0.9))
    row = several(made, 20)
    assert unknown not in row.targets and unknown in row.tokens


# -- pure functions ---------------------------------------------------------------------------


def as_dict(row):
    hidden = np.full(len(row.tokens), -1)
    hidden[row.places] = row.targets
    found, ends = {}, np.cumsum(row.lengths)
    answers = {name: read_labels(row, name) for name in row.questions}
    for number, end, length in zip(row.numbers.tolist(), ends, row.lengths, strict=True):
        here = slice(end - length, end)
        told = {name: known[number] for name, known in answers.items() if number in known}
        found[number] = (row.tokens[here].tolist(), row.segments[here].tolist(), hidden[here].tolist(), told)
    return found


@pytest.mark.parametrize("tasks", [(task,) for task in TASKS] + [TASKS, ("masked", "entailment")], ids="+".join)
@pytest.mark.parametrize("whole_words", [False, True])
def test_a_sample_is_the_same_whenever_it_is_asked(tasks, whole_words):
    numbers = np.array([0, 1, 2, 3, 5, 8, 100, 101, 5000, 10**9, 10**9 + 1])
    together = as_dict(samples(*tasks, whole_words=whole_words).batch(numbers))
    made = samples(*tasks, whole_words=whole_words)
    made.batch(np.arange(40))  # what came before does not matter
    alone = {}
    for number in numbers[::-1]:
        alone |= as_dict(made.batch(np.array([number])))
    assert alone == together and len(together) == len(numbers)
    other = as_dict(samples(*tasks, whole_words=whole_words, seed=7).batch(numbers))
    assert other != together


# -- pairs ------------------------------------------------------------------------------------


def test_next_sentence_says_what_is_true():
    row = several(samples("next-sentence"), 10)
    answers = read_labels(row, "next-sentence")
    assert 0.4 < np.mean(list(answers.values())) < 0.6
    for number, a, b in split_row(row):
        assert consecutive(a) and consecutive(b) and len(document(a)) == len(document(b)) == 1
        follows = b[0] == a[-1] + 1 and document(a) == document(b)
        assert follows == (answers[number] == 0)
        if answers[number] == 1:
            assert document(a) != document(b)
        assert sentence(b[:1]) not in sentence(a) and len(a) + len(b) + 3 <= 64


def test_next_sentence_is_not_given_away_by_lengths():
    row = several(samples("next-sentence"), 40)
    answers = read_labels(row, "next-sentence")
    found = [(answers[n], len(a), len(b)) for n, a, b in split_row(row)]
    true, false = (np.array([f[1:] for f in found if f[0] == answer]) for answer in (0, 1))
    for measure in (lambda x: x[:, 1], lambda x: x.sum(1), lambda x: np.abs(x[:, 0] - x[:, 1])):
        assert abs(measure(true).mean() - measure(false).mean()) < 0.12 * measure(true).std() + 0.5
    cut = [b[-1] + 1 - FIRST_ID not in TEXT.sentences for n, _, b in split_row(row) if answers[n] == 1]
    assert np.mean(cut) < 0.02  # both end with a sentence


def test_a_false_partner_is_about_as_long_as_the_true_one():
    text = make_sentences(200, sentences=(2, 3))  # two sentences each: the true partner is the second
    row = several(samples("next-sentence", text=text), 3)
    answers, lengths = read_labels(row, "next-sentence"), np.diff(text.sentences)
    apart = []
    for number, a, b in split_row(row):
        if answers[number]:
            true = lengths[np.searchsorted(text.sentences, a[0] - FIRST_ID) + 1]
            apart.append(abs(len(b) - true))
    assert len(apart) > 200 and np.mean(apart) < 1.5  # two sentences by chance are 7 apart


def test_sentence_order_swaps_the_same_two():
    row = several(samples("sentence-order"), 10)
    answers = read_labels(row, "sentence-order")
    assert 0.4 < np.mean(list(answers.values())) < 0.6
    for number, a, b in split_row(row):
        first, second = (b, a) if answers[number] else (a, b)
        assert consecutive(np.concatenate([first, second])) and len(document([*a, *b])) == 1


def words_of(ids):
    starts = [
        place for place, i in enumerate(ids) if TEXT.words[i - FIRST_ID] or i - FIRST_ID in TEXT.sentences or place == 0
    ]
    return [tuple(ids[x:y]) for x, y in zip(starts, [*starts[1:], len(ids)], strict=True)]


def test_inversion_moves_whole_words_and_only_comparing_tells():
    row = several(samples("inversion"), 10)
    answers = read_labels(row, "inversion")
    assert 0.4 < np.mean(list(answers.values())) < 0.6
    equal = {0: [], 1: []}
    for number, a, b in split_row(row):
        assert consecutive(a) and len(set(sentence(a))) == len(set(sentence(b))) == 1
        assert (set(a) == set(b)) == (answers[number] == 1)
        assert set(a) == set(b) or not set(a) & set(b)
        whole = np.sort(b)
        assert consecutive(whole) and not consecutive(b)  # one sentence, in another order, whether it is A or not
        assert sorted(words_of(b.tolist())) == sorted(words_of(whole.tolist()))
        equal[answers[number]].append(len(a) == len(b))
    assert all(equal[1]) and np.mean(equal[0]) > 0.95


def test_inversion_hides_nothing_in_the_second_text():
    row = several(samples("masked", "inversion"), 3)
    assert len(row.places) and not row.segments[row.places].any()
    both = several(samples("masked", "sentence-order"), 3)
    assert both.segments[both.places].any()


def repeated(*sentences):
    """A text of sentences that may be alike, each a document's half."""
    ids = np.concatenate(sentences).astype(np.uint32) + FIRST_ID
    starts = np.concatenate([[0], np.cumsum([len(s) for s in sentences])])
    return Sentences(ids, np.ones(len(ids), dtype=bool), starts, np.arange(0, len(sentences) + 1, 2))


def test_a_copy_or_a_reordering_is_never_the_false_partner():
    text = repeated(*[[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]] * 20, [1, 2, 3, 4, 9, 9], [7, 8, 1, 1])
    row = samples("inversion", text=text).batch(np.arange(400))
    answers = read_labels(row, "inversion")
    for number, a, b in split_row(row):
        assert (sorted(a) == sorted(b)) == (answers[number] == 1) and a.tolist() != b.tolist()
    with pytest.raises(DataError, match="no two different sentences"):
        samples("inversion", text=repeated(*[[1, 2, 3, 4], [4, 3, 2, 1]] * 5))
    with pytest.raises(DataError, match="at least 4 words"):
        samples("inversion", text=repeated(*[[1, 2], [3, 3, 3, 3, 3]] * 5))


def test_an_order_that_comes_out_as_it_was_is_turned():
    text = repeated(*[[1, 1, 1, 2], [3, 3, 4, 3]] * 10)
    row = samples("inversion", text=text).batch(np.arange(300))
    for number, a, b in split_row(row):
        assert read_labels(row, "inversion")[number] == 0 or a.tolist() != b.tolist()


def test_entailment_reads_every_row_of_the_table():
    made = samples("entailment", length=30)
    row = made.batch(np.arange(made.per_epoch))
    answers = read_labels(row, "entailment")
    found = {answers[n]: (a - FIRST_ID, b - FIRST_ID) for n, a, b in split_row(row)}
    assert found.keys() == {0, 1, 2}
    for label, (a, b) in found.items():
        sides = [
            PAIRS.ids[PAIRS.parts[2 * label + side] : PAIRS.parts[2 * label + side + 1]] - FIRST_ID for side in (0, 1)
        ]
        assert a.tolist() == sides[0][: len(a)].tolist() and b.tolist() == sides[1][: len(b)].tolist()
    assert [len(part) for part in found[0]] == [4, 5] and [len(part) for part in found[2]] == [14, 13]
    with pytest.raises(DataError, match="--pairs FILE"):
        PretrainingSamples(TEXT, MARKS, 30, tasks=("entailment",))


def test_tasks_come_by_turns():
    made = samples(*TASKS)
    row = made.batch(np.arange(80))
    assert made.kinds == TASKS[1:]
    for place, kind in enumerate(made.kinds):
        assert sorted(read_labels(row, kind)) == list(range(place, 80, 4))
    made = samples("entailment", "masked")
    row = made.batch(np.arange(80))
    assert made.kinds == ("masked", "entailment") and sorted(read_labels(row, "entailment")) == list(range(1, 80, 2))
    assert [b is None for n, _, b in split_row(row) if n % 2 == 0] == [True] * 40
    assert several(samples("masked"), 1).questions == {}


def test_one_document_is_enough_if_it_is_long():
    text = make_sentences(1, sentences=(150, 151))
    row = several(samples("next-sentence", text=text), 10)
    answers = read_labels(row, "next-sentence")
    total = len(text.ids)
    for number, a, b in split_row(row):
        gap = abs(int(b[0]) - int(a[0]))
        if answers[number]:
            assert min(gap, total - gap) > total / 6
        else:
            assert b[0] == a[-1] + 1
    with pytest.raises(DataError, match="near each other") as caught:
        samples("next-sentence", text=make_sentences(1, sentences=(4, 5)))
    assert "sentence-order" in str(caught.value)


def test_documents_of_one_sentence_have_no_pairs():
    lonely = make_sentences(20, sentences=(1, 2))
    with pytest.raises(DataError, match="no document has two sentences"):
        samples("sentence-order", text=lonely)
    assert samples("masked", text=lonely).per_epoch == 20
    some = make_sentences(40, sentences=(1, 4))
    made = samples("sentence-order", text=some)
    assert made.stretches.left_out == (np.diff(some.documents) == 1).sum() > 5


def test_a_last_sentence_is_not_left_out():
    read = {token for _, a, b in split_row(several(samples("sentence-order"), 1)) for token in (*a, *b)}
    assert read == set(TEXT.ids.tolist())


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'next-sentence'"):
        samples("next-sentense")
    with pytest.raises(ConfigError, match="each once"):
        samples("masked", "masked")
    with pytest.raises(ConfigError, match="at least one"):
        samples()
    with pytest.raises(ConfigError, match="length = 5"):
        samples("masked", length=5)
    plain = TokenizerConfig.from_config("bytes").train()
    with pytest.raises(UnsupportedError, match="lacks marks"):
        Marks.of(plain)


# -- from raw text ----------------------------------------------------------------------------

WORDS = [f"{a}{b}{c}" for a in "bdfglm" for b in "aeiou" for c in "nrst"]


def raw_text():
    rng = np.random.default_rng(5)
    documents = []
    for _ in range(25):
        lines = [" ".join(rng.choice(WORDS, rng.integers(4, 9))).capitalize() + "." for _ in range(rng.integers(3, 9))]
        documents.append(lines)
    return documents


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "words", "characters"])
def test_labels_hold_in_the_text_itself(kind):
    documents = raw_text()
    text = "\n\n".join(" ".join(lines) for lines in documents)
    special = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
    tokenizer = TokenizerConfig.from_config(kind).train([text, text.replace(" ", "\n")] * 2, special=special)
    found = tokenise_sentences(Corpus.of_text(text), tokenizer)
    made = PretrainingSamples(
        found, Marks.of(tokenizer), 300 if kind == "characters" else 80, tasks=("next-sentence", "inversion")
    )
    row = made.batch(np.arange(200))
    plain = [plainly(" ".join(lines)) for lines in documents]
    at, answers = 0, {n: v for name in row.questions for n, v in read_labels(row, name).items()}
    for number, length in zip(row.numbers.tolist(), row.lengths.tolist(), strict=True):
        ids, segments = row.tokens[at : at + length], row.segments[at : at + length]
        at += length
        written = [tokenizer.decode(part) for part in (ids[segments == 0][1:-1], ids[segments == 1][:-1])]
        if kind in ("words", "characters") and number % 2 == 0:
            assert [part.strip() for part in written] == written  # no space tells where in a document it stood
        a, b = map(plainly, written)
        if number % 2 == 0:
            follows = any(f"{a} {b}" in whole for whole in plain)
            assert follows == (answers[number] == 0), (a, b)
            assert any(a in whole for whole in plain) and any(b in whole for whole in plain)
        else:
            if kind == "wordpiece":
                assert (sorted(a.split()) == sorted(b.split())) == (answers[number] == 1)
            assert (letters(a) == letters(b)) == (answers[number] == 1) and a != b


def plainly(text):
    """Words in small letters with a full stop as a word, however the tokens are spelled."""
    return " ".join(re.findall(r"\w+|[^\w\s]", text.lower()))


def letters(text):
    """All characters but spaces: the first word of a text may have none before it, wherever it is moved to."""
    return sorted(text.replace(" ", ""))
