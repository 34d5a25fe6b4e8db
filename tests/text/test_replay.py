"""Merges one by one: the last step is what the engine gives, and each step is the merge that comes next."""

import itertools
import json
import random
from collections import Counter

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from fixtures.texts import make_text
from weft.errors import DataError, UnsupportedError
from weft.text import Tokenizer, TokenizerConfig
from weft.text.replay import learn, replay
from weft.text.spelling import BYTE_CHARACTERS

PETER = "Peter Piper picked a peck of pickled peppers"
TEXTS = [PETER, "", " ", "aaaaaaa aaa", "naïve 🎉🎉 e\u0301 e\u0301", "\n\n\t x  x\r\n", "日本語 日本", "the the the"]


@pytest.mark.parametrize("sentence", TEXTS)
def test_the_last_step_is_what_the_engine_gives(sentence):
    for tokenizer in (
        learn(sentence),
        TokenizerConfig.from_config({"kind": "bpe", "vocab_size": 400}).train([make_text(3000)]),
    ):
        found = replay(tokenizer, sentence) if _merges(tokenizer) else None
        if found is None:
            with pytest.raises(UnsupportedError, match="without merges"):
                replay(tokenizer, sentence)
            continue
        engine = tokenizers.Tokenizer.from_str(tokenizer.to_json())
        assert list(found.end) == engine.encode(sentence, add_special_tokens=False).tokens
        for merge in found.merges:
            assert b"".join(map(tokenizer.spell, merge.tokens)) == sentence.encode()


def _merges(tokenizer):
    return [tuple(pair) for pair in json.loads(tokenizer.to_json())["model"]["merges"]]


def test_what_a_sentence_teaches():
    """The engine's merges, in its order; each pair was the most frequent of its time, counted here by hand."""
    found = replay(learn(PETER), PETER)
    assert [merge.pair for merge in found.merges] == _merges(found.tokenizer)
    assert [(merge.pair, merge.count) for merge in found.merges[:2]] == [(("p", "e"), 4), (("c", "k"), 3)]
    words = ["Peter", *("Ġ" + word for word in PETER.split(" ")[1:])]
    cut = [list(word) for word in words]
    for merge in found.merges:
        counts = Counter(pair for word in cut for pair in itertools.pairwise(word))
        assert counts[merge.pair] == merge.count == max(counts.values())
        first, second = merge.pair
        cut = [" ".join(word).replace(f"{first} {second}", first + second).split(" ") for word in cut]
        assert tuple(token for word in cut for token in word) == merge.tokens
    assert max(Counter(pair for word in cut for pair in itertools.pairwise(word)).values()) == 1


def test_a_smaller_vocabulary_stops_earlier():
    some, all_ = replay(learn(PETER, 260), PETER), replay(learn(PETER), PETER)
    assert some.merges == all_.merges[:3]


def test_merges_in_the_order_of_their_ranks():
    tokenizer = TokenizerConfig.from_config({"kind": "bpe", "vocab_size": 400}).train([make_text(3000)])
    found = replay(tokenizer, "the cat sat quickly")
    ranks = [merge.rank for merge in found.merges]
    assert ranks == sorted(ranks) and len(set(ranks)) == len(ranks)
    assert [_merges(tokenizer)[rank] for rank in ranks] == [merge.pair for merge in found.merges]


def strange(seed):
    """A list of merges in an order that nobody could have learned: later ones build what earlier ones need."""
    rng = random.Random(seed)
    pairs = [(a, b) for a in ("a", "b", "ab", "ba", "aa", "aba") for b in ("a", "b", "ab", "ba", "bb")]
    merges = rng.sample(pairs, 14)
    tokens = dict.fromkeys([*BYTE_CHARACTERS, *(part for pair in merges for part in (*pair, "".join(pair)))])
    vocabulary = {token: number for number, token in enumerate(tokens)}
    engine = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    engine.add_special_tokens(["<|endoftext|>"])
    return Tokenizer(engine)


def test_lists_in_any_order():
    """A stranger's list may be in any order; the sentence ends as the engine says, or the replay would refuse."""
    for seed in range(30):
        tokenizer, rng = strange(seed), random.Random(seed)
        for _ in range(5):
            sentence = "".join(rng.choices("ab", k=14))
            assert replay(tokenizer, sentence).end == tuple(tokenizer.names[n] for n in tokenizer.encode(sentence))


@pytest.mark.parametrize("kind", ["characters", "bytes", "words", "wordpiece", "unigram"])
def test_schemes_without_merges_are_refused(kind):
    tokenizer = TokenizerConfig.from_config(kind).train([make_text(3000)])
    with pytest.raises(UnsupportedError, match=kind):
        replay(tokenizer, PETER)


def test_a_tokenizer_with_exceptions_is_refused():
    """A word that stands outside of the merges: nothing is shown rather than something that is not so."""
    tokenizer = learn(PETER)
    tokenizer.engine.add_tokens(["peck"])
    again = Tokenizer.from_json(tokenizer.to_json())
    assert replay(again, "Peter picked").merges
    with pytest.raises(UnsupportedError, match="merges alone"):
        replay(again, PETER)


def test_half_a_character_is_refused():
    with pytest.raises(DataError, match="surrogate"):
        replay(learn(PETER), "a\ud800b")
