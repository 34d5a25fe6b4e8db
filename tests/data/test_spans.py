"""Span corruption: what is hidden can be put back, in the numbers of T5's code, and all by sample number."""

import itertools
import math
import time
from collections import Counter

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from fixtures.numbered_sentences import FIRST_ID, make_marks, make_sentences
from fixtures.texts import make_text
from weft.data import Sentences, SpanMarks, SpanRow, Spans, SpanSamples, tokenise_sentences
from weft.data.keyed_draws import KeyedDraws
from weft.data.spans import corrupted, restored, written_in
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.text import Corpus, Tokenizer, TokenizerConfig
from weft.text.word_edges import WordEdges

END, ZERO, MANY = 1, 100_000, 500
USUAL = Spans()
MARKS = SpanMarks(ZERO - np.arange(MANY), END)  # counting down, as T5's do
TEXT = make_sentences()
SENTENCE_OF = np.repeat(np.arange(len(TEXT)), np.diff(TEXT.sentences))
DOCUMENT_OF = np.repeat(np.arange(TEXT.document_count), np.diff(TEXT.documents))[SENTENCE_OF]

# also shares for which there are hardly tokens left to part the spans
kinds = st.builds(Spans, share=st.floats(0.01, 1), span=st.floats(1, 12), anywhere=st.booleans())


def stretch(length):
    return np.arange(FIRST_ID, FIRST_ID + length)


def mask_of(source, length):
    """Which tokens of `stretch(length)` are missing in a source."""
    return ~np.isin(stretch(length), source)


def runs(mask):
    """The lengths of the hidden spans, in order."""
    return [len(list(part)) for hidden, part in itertools.groupby(mask) if hidden]


def several(length, count, spans=USUAL):
    """One stretch, hidden in many ways."""
    tokens, lengths = np.tile(stretch(length), count), np.full(count, length)
    return list(SpanRow.of(tokens, lengths, np.arange(count), KeyedDraws(0), MARKS, spans).pairs())


# -- a reference, token by token --------------------------------------------------------------


def expected_counts(length, share, span):
    """T5's numbers, one at a time; Python and numpy both round halves to even."""
    if length < 2:
        return 0, 0
    hidden = min(max(round(float(np.float32(length) * np.float32(share))), 1), length - 1)
    spans = max(round(float(np.float32(hidden) / np.float32(span))), 1)
    return hidden, min(spans, hidden, length - hidden)


def expected_pair(tokens, mask):
    """Source and target for a mask, by walking along it."""
    source, target, gaps = [], [], 0
    for place, (token, hidden) in enumerate(zip(tokens.tolist(), mask, strict=True)):
        if not hidden:
            source.append(token)
            continue
        if place == 0 or not mask[place - 1]:
            source.append(ZERO - gaps)
            target.append(ZERO - gaps)
            gaps += 1
        target.append(token)
    return [*source, END], [*target, ZERO - gaps, END]


def possible(length, hidden, spans, anywhere):
    """Every mask that the rule allows, out of all that there are."""
    found = set()
    for places in itertools.combinations(range(1, length), hidden):
        mask = np.zeros(length, dtype=bool)
        mask[list(places)] = True
        if len(runs(mask)) == spans and (anywhere or mask[-1]):
            found.add(tuple(mask.tolist()))
    return found


# -- one stretch ------------------------------------------------------------------------------


@given(
    tokens=st.lists(st.integers(2, 90_000), max_size=200),
    spans=kinds,
    seed=st.integers(0, 2**40),
    number=st.integers(0, 2**40),
)
def test_what_was_hidden_can_be_put_back(tokens, spans, seed, number):
    source, target = corrupted(np.array(tokens, dtype=np.uint32), MARKS, spans, seed=seed, number=number)
    assert restored(source, target, MARKS).tolist() == tokens
    found = spans.lengths(np.array([len(tokens)]))
    assert (len(source), len(target)) == (found[0].item(), found[1].item())


@given(length=st.integers(0, 200), spans=kinds, number=st.integers(0, 2**40))
def test_source_and_target_are_those_of_the_reference(length, spans, number):
    source, target = corrupted(stretch(length), MARKS, spans, number=number)
    mask = mask_of(source, length)
    hidden, count = expected_counts(length, spans.share, spans.span)
    assert (source.tolist(), target.tolist()) == expected_pair(stretch(length), mask)
    assert mask.sum() == hidden and len(runs(mask)) == count
    assert not mask[:1].any() and (spans.anywhere or mask[-1:].all() or length < 2)


@given(length=st.integers(2, 300), number=st.integers(0, 2**40))
def test_sentinels_stand_in_order_and_one_more_at_the_end(length, number):
    source, target = corrupted(stretch(length), MARKS, number=number)
    gaps = expected_counts(length, 0.15, 3)[1]
    assert source[source > 50_000].tolist() == [ZERO - n for n in range(gaps)]
    assert target[target > 50_000].tolist() == [ZERO - n for n in range(gaps + 1)]
    assert target[0] == ZERO and target[-2] == ZERO - gaps and source[-1] == target[-1] == END


def test_the_counts_are_t5s():
    lengths = np.array([0, 1, 2, 3, 9, 10, 30, 31, 64, 128, 190, 512, 568])
    hidden, spans = USUAL.counts(lengths)
    assert hidden.tolist() == [0, 0, 1, 1, 1, 2, 4, 5, 10, 19, 29, 77, 85]
    assert spans.tolist() == [0, 0, 1, 1, 1, 1, 1, 2, 3, 6, 10, 26, 28]
    # the paper's 512 tokens of source, with the end, and 114 of target: it has one sentinel more than their code makes
    assert [part.item() for part in USUAL.lengths(np.array([568]))] == [512, 115]
    every = np.arange(2, 3000)
    assert np.array_equal(USUAL.counts(every), np.array([expected_counts(n, 0.15, 3) for n in every]).T)


@pytest.mark.parametrize("anywhere", [False, True])
def test_the_shortest_stretches(anywhere):
    spans = Spans(anywhere=anywhere)
    made = [[part.tolist() for part in corrupted(stretch(n), MARKS, spans)] for n in range(3)]
    assert made[0] == [[END], [ZERO, END]] and made[1] == [[10, END], [ZERO, END]]
    assert made[2] == [[10, ZERO, END], [ZERO, 11, ZERO - 1, END]]
    three = {tuple(source.tolist()) for source, _ in several(3, 50, spans)}
    last, middle = (10, 11, ZERO, END), (10, ZERO, 12, END)
    assert three == ({last, middle} if anywhere else {last})


def test_other_shares_and_spans_would_be_noticed():
    assert Spans(share=0.2).counts(np.array([128]))[0] != 19 and Spans(span=2).counts(np.array([128]))[1] != 6
    source, target = corrupted(stretch(64), MARKS)
    wrong = source.copy()
    wrong[0] = 99
    assert restored(wrong, target, MARKS).tolist() != stretch(64).tolist()
    swapped = SpanMarks(MARKS.sentinels[[1, 0, *range(2, MANY)]], END)
    assert corrupted(stretch(64), swapped)[0].tolist() != source.tolist()


def test_a_target_that_a_model_wrote_is_read_as_far_as_it_goes():
    source = np.array([10, ZERO, 13, ZERO - 1, 15, END])
    read = lambda *target: restored(source, np.array(target), MARKS).tolist()  # noqa: E731
    assert read(ZERO, 11, 12, ZERO - 1, 14, ZERO - 2, END) == [10, 11, 12, 13, 14, 15]
    assert read(ZERO, 11, ZERO - 1, 14) == [10, 11, 13, 14, 15]  # no last sentinel, no end
    assert read(ZERO - 1, 14) == [10, 13, 14, 15] and read() == [10, 13, 15]
    assert read(7, ZERO, 11, ZERO, 12, ZERO - 1, 14, END, 9) == [10, 11, 13, 14, 15]
    assert written_in(np.array([7, ZERO, 11, ZERO, 12, ZERO - 2, END, 9]), MARKS) == {ZERO: [11], ZERO - 2: []}


# -- chance -----------------------------------------------------------------------------------


@pytest.mark.parametrize("anywhere", [False, True])
def test_all_masks_are_equally_likely(anywhere):
    spans = Spans(share=0.4, span=2, anywhere=anywhere)
    hidden, count = expected_counts(12, 0.4, 2)
    masks = possible(12, hidden, count, anywhere)
    assert (hidden, count) == (5, 2) and len(masks) == math.comb(4, 1) * (math.comb(7, 2) if anywhere else 6)
    draws = 100 * len(masks)
    found = Counter(tuple(mask_of(source, 12).tolist()) for source, _ in several(12, draws, spans))
    assert set(found) == masks
    squares = sum((seen - 100) ** 2 / 100 for seen in found.values())
    freedom = len(masks) - 1
    assert abs(squares - freedom) < 5 * math.sqrt(2 * freedom)


def test_spans_have_three_tokens_on_average_and_many_lengths():
    length, count = 512, 400
    hidden, spans = expected_counts(length, 0.15, 3)
    found = [n for source, _ in several(length, count) for n in runs(mask_of(source, length))]
    assert len(found) == count * spans and abs(np.mean(found) - 3) < 0.05
    for size in range(1, 8):  # a random cut into parts, each with at least one
        share = math.comb(hidden - 1 - size, spans - 2) / math.comb(hidden - 1, spans - 1)
        assert abs(found.count(size) / len(found) - share) < 5 * math.sqrt(share / len(found))
    shorter = [n for source, _ in several(length, 20, Spans(span=2)) for n in runs(mask_of(source, length))]
    assert abs(np.mean(shorter) - 2) < 0.05  # a negative control


def test_one_span_is_always_the_end_unless_it_may_be_anywhere():
    ends = {tuple(source.tolist()) for source, _ in several(30, 200, Spans(anywhere=False))}
    free = {tuple(source.tolist()) for source, _ in several(30, 2000)}
    assert len(ends) == 1 and len(free) == 26  # behind each of the 26 tokens that are kept


# -- samples ----------------------------------------------------------------------------------


def samples(length=64, seed=0, sentences=TEXT, marks=MARKS, **spans):
    return SpanSamples(sentences, marks, length, Spans(**spans), seed)


def by_number(made, numbers):
    row = made.batch(np.asarray(numbers))
    return {
        number: (source.tolist(), target.tolist())
        for number, (source, target) in zip(row.numbers.tolist(), row.pairs(), strict=True)
    }


def whole(row):
    return [restored(source, target, MARKS) for source, target in row.pairs()]


def test_an_epoch_reads_the_text_once():
    made = samples()
    for epoch in (0, 1, 7):
        found = whole(made.batch(np.arange(made.per_epoch) + epoch * made.per_epoch))
        assert sorted(np.concatenate(found).tolist()) == TEXT.ids.tolist()
        for ids in found:
            assert (np.diff(ids) == 1).all() and len(set(DOCUMENT_OF[ids - FIRST_ID])) == 1 and len(ids) <= 64


def test_a_sample_is_a_function_of_seed_and_number():
    made, numbers = samples(), [5, 3, 1000, 3 + 10**9, 0]
    together = by_number(made, numbers)
    for number in numbers:
        assert by_number(made, [number])[number] == together[number]
    assert by_number(samples(), numbers[::-1]) == together
    assert by_number(samples(seed=1), numbers) != together


def test_the_seed_changes_the_order_and_what_is_hidden():
    starts = []
    for seed in (0, 1):
        row = samples(seed=seed).batch(np.arange(samples().per_epoch))
        starts.append(np.array([ids[0] for ids in whole(row)])[np.argsort(row.numbers)])
    assert (starts[0] != starts[1]).mean() > 0.8 and sorted(starts[0]) == sorted(starts[1])
    one = make_sentences(1, sentences=(6, 7), tokens=(20, 21))
    hidden = {str(by_number(samples(length=120, seed=seed, sentences=one), [0])) for seed in range(20)}
    assert samples(length=120, sentences=one).per_epoch == 1 and len(hidden) == 20


def test_a_pair_stays_what_it_is():
    """A run that is continued after an update must not meet other data."""
    for anywhere, hidden in ((True, [12, 13, 14, 22, 23, 24]), (False, [12, 13, 14, 37, 38, 39])):
        source, target = corrupted(stretch(40), MARKS, Spans(anywhere=anywhere), seed=3, number=12345)
        assert (source.tolist(), target.tolist()) == expected_pair(stretch(40), np.isin(np.arange(40), hidden))


def test_another_epoch_hides_other_spans_in_another_order():
    made = samples()
    count = made.per_epoch
    first, second = (made.batch(np.arange(count) + epoch * count) for epoch in (0, 1))
    hidden = [
        {ids[0]: source.tolist() for ids, (source, _) in zip(whole(row), row.pairs(), strict=True)}
        for row in (first, second)
    ]
    assert hidden[0].keys() == hidden[1].keys()
    long = [start for start, source in hidden[0].items() if len(source) > 40]
    same = [start for start in long if hidden[0][start] == hidden[1][start]]
    assert len(long) > 20 and len(same) < 0.05 * len(long)
    order = [np.array([ids[0] for ids in whole(row)])[np.argsort(row.numbers)] for row in (first, second)]
    assert (order[0] != order[1]).mean() > 0.8


def test_what_is_held_out_is_asked_alike_in_every_evaluation():
    judged = np.arange(samples(seed=1).per_epoch)
    assert by_number(samples(seed=1), judged) == by_number(samples(seed=1), judged)
    assert by_number(samples(seed=1), judged) != by_number(samples(seed=2), judged)  # so the task has to fix it


def test_the_shortest_come_first_and_lengths_are_known_before():
    made = samples()
    numbers = np.arange(100)
    row = made.batch(numbers)
    assert (np.diff(row.source_lengths) >= 0).all() and sorted(row.numbers.tolist()) == numbers.tolist()
    known = made.lengths(row.numbers)
    assert np.array_equal(known, (row.source_lengths, row.target_lengths))
    assert len(set(row.source_lengths.tolist())) > 5 and repr(row).startswith("SpanRow(100 texts")
    assert not list(made.batch(numbers[:0]).pairs())


def test_the_share_that_is_hidden():
    row = samples(length=128).batch(np.arange(2000))
    hidden, total = (row.target < 50_000).sum() - 2000, sum(len(ids) for ids in whole(row))
    assert abs(hidden / total - 0.15) < 0.01
    row = samples(length=128, share=0.4).batch(np.arange(500))
    assert abs(((row.target < 50_000).sum() - 500) / sum(len(ids) for ids in whole(row)) - 0.4) < 0.02


def test_ten_thousand_stretches_in_two_seconds():
    tokens = np.tile(stretch(128), 10_000)
    lengths, numbers = np.full(10_000, 128), np.arange(10_000)
    started = time.process_time()
    row = SpanRow.of(tokens, lengths, numbers, KeyedDraws(0), MARKS, USUAL)
    assert time.process_time() - started < 2
    assert row.source.shape == (1_160_000,) and row.target.shape == (270_000,)


# -- what is refused --------------------------------------------------------------------------


def with_sentinels(count):
    return SpanMarks(MARKS.sentinels[:count], END)


def test_too_few_sentinels_are_refused_before_anything_is_made():
    long = make_sentences(3, sentences=(40, 50))
    most = max(expected_counts(n, 0.15, 3)[1] for n in range(2, 129)) + 1
    assert samples(length=128, sentences=long, marks=with_sentinels(most)).per_epoch
    with pytest.raises(ConfigError, match=r"6 spans in \d+ tokens, and 6 sentinels\nexpected 7 sentinels") as caught:
        samples(length=128, sentences=long, marks=with_sentinels(most - 1))
    assert len(str(caught.value).splitlines()) == 3
    with pytest.raises(ConfigError, match="sentinels"):
        corrupted(stretch(128), with_sentinels(6))
    with pytest.raises(ConfigError, match="0 sentinels"):
        corrupted(stretch(1), with_sentinels(0))


def test_texts_in_which_nothing_can_be_hidden():
    ids = np.arange(10, 14).astype(np.uint32)
    single = Sentences(ids, np.ones(4, dtype=bool), np.arange(5), np.arange(5))
    with pytest.raises(DataError, match="single token"):
        samples(sentences=single)
    with pytest.raises(ConfigError, match="length = 1"):
        samples(length=1)
    mixed = Sentences(ids, np.ones(4, dtype=bool), np.array([0, 1, 4]), np.array([0, 1, 2]))
    assert [found.tolist() for found in whole(samples(sentences=mixed).batch(np.arange(1)))] == [[11, 12, 13]]
    assert samples(sentences=mixed).per_epoch == 1


# -- with tokenizers --------------------------------------------------------------------------

NAMES = tuple(f"<extra_id_{n}>" for n in range(40))
LINES = [line for line in make_text(6000).splitlines() if line]
CORPUS = "\n\n".join(" ".join(LINES[start : start + 9]) for start in range(0, len(LINES), 9))


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words", "wordpiece", "characters", "bytes"])
def test_real_text_comes_back(kind):
    fields = {} if kind in ("characters", "bytes") else {"vocab_size": 400}
    tokenizer = TokenizerConfig.from_config({"kind": kind, **fields}).train([CORPUS], special=NAMES)
    found = SpanMarks.of(tokenizer)
    assert tokenizer.decode(found.sentinels) == "" and len(found.sentinels) == 40 and found.end == tokenizer.end
    sentences = tokenise_sentences(Corpus.of_text(CORPUS), tokenizer)
    untidy = []
    for edges in (found.edges, None):
        made = SpanSamples(sentences, SpanMarks(found.sentinels, found.end, edges), 48)
        stretches = [restored(*pair, found) for pair in made.batch(np.arange(made.per_epoch)).pairs()]
        texts = [tokenizer.decode(ids) for ids in stretches]
        assert Counter("".join("".join(texts).lower().split())) == Counter("".join(CORPUS.lower().split()))
        assert kind == "wordpiece" or all(each.strip() in CORPUS for each in texts)
        untidy.append(sum(each != each.strip() for each in texts))
        if edges is not None:  # a space stays only where no token is the same without it
            bare = WordEdges.of(tokenizer).bare
            assert all(bare[ids[0]] == ids[0] and not edges.blank[ids[[0, -1]]].any() for ids in stretches)
    assert untidy == [0, 0] if kind == "wordpiece" else untidy[0] < untidy[1]
    assert untidy[0] == 0 or kind in ("bpe", "unigram", "words")


def test_a_space_that_the_tokenizer_writes_itself_stays():
    """T5's begins every text with one: a stretch without it would be a text as no user will write it."""
    words = sorted({word.strip(".") for line in LINES for word in line.split()} | {"."} | set("a"))
    pieces = [("<unk>", 0.0), *((mark + word, -1.0) for word in words for mark in ("▁", "")), ("▁", -9.0)]
    engine = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=0))
    engine.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    engine.decoder = tokenizers.decoders.Metaspace()
    engine.add_special_tokens(["</s>", *reversed(NAMES)])
    tokenizer = Tokenizer(engine, ends=("</s>",))
    found = SpanMarks.of(tokenizer)
    assert (np.diff(found.sentinels) == -1).all() and found.sentinels[-1] == tokenizer.end + 1
    made = SpanSamples(tokenise_sentences(Corpus.of_text(CORPUS), tokenizer), found, 48)
    firsts = {engine.id_to_token(int(source[0])) for source, _ in made.batch(np.arange(made.per_epoch)).pairs()}
    assert len(firsts) > 5 and all(first.startswith("▁") for first in firsts)
    assert (WordEdges.of(tokenizer).bare != found.edges.bare).any()


def test_a_tokenizer_without_sentinels_is_refused():
    tokenizer = TokenizerConfig.from_config({"kind": "characters"}).train([CORPUS])
    with pytest.raises(UnsupportedError, match="no sentinels"):
        SpanMarks.of(tokenizer)


def test_white_space_at_the_ends_is_cut_off():
    edges = make_marks(FIRST_ID + len(TEXT.ids)).edges
    ids = TEXT.ids.astype(np.int64)
    edges.blank[ids[[0, -1]]] = True
    edges.bare[ids[1]] = 5
    found = whole(samples(marks=SpanMarks(MARKS.sentinels, END, edges)).batch(np.arange(samples().per_epoch)))
    assert sorted(np.concatenate(found).tolist()) == [5, *ids[2:-1].tolist()]
