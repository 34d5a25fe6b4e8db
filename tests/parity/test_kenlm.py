"""Our ARPA files as KenLM reads them: the same score for every token, and a file of KenLM's kind as we read it."""

import numpy as np
import pytest

from fixtures.texts import make_text
from weft.models import NGramConfig
from weft.models.ngram.arpa import arpa_lines, read_arpa, spelled
from weft.models.ngram.counts import count
from weft.models.ngram.smoothing import SmoothingConfig
from weft.text import TokenizerConfig

kenlm = pytest.importorskip("kenlm", reason="kenlm is not installed: its scores are not compared (pip install kenlm)")


def made(path, kind, order, tokenizer_kind):
    """A model of a small text, its file as KenLM opens it, and how the tokens are spelled there."""
    text = make_text(4000)
    tokenizer = TokenizerConfig.from_config(tokenizer_kind).train([text])
    ids = np.concatenate([np.append(tokenizer.encode(line + "\n"), tokenizer.end) for line in text.splitlines()])
    way = SmoothingConfig.from_config(kind)
    tables = way.tables(count(ids, order, tokenizer.vocab_size, tokenizer.end), tokenizer.end)
    words = spelled(tokenizer.names, tokenizer.end, None)
    path.write_text("".join(arpa_lines(tables, words)), encoding="utf-8")
    return tokenizer, tables, words, kenlm.Model(str(path))


def scores(peer, words):
    """KenLM's logarithm of each word after the begin of a sentence."""
    state, after, found = kenlm.State(), kenlm.State(), []
    peer.BeginSentenceWrite(state)
    for word in words:
        found.append(peer.BaseScore(state, word, after))
        state, after = after, state
    return found


@pytest.mark.parametrize(
    ("kind", "order", "tokenizer_kind"),
    [
        ("kneser-ney", 5, "words"),
        ("kneser-ney", 3, "characters"),
        ("kneser-ney", 2, "bpe"),
        ("witten-bell", 4, "unigram"),
        ("jelinek-mercer", 3, "bytes"),
    ],
)
def test_every_token_has_the_same_score(tmp_path, kind, order, tokenizer_kind):
    tokenizer, tables, words, peer = made(tmp_path / "m.arpa", kind, order, tokenizer_kind)
    assert peer.order == order
    for text in ("The cat sat.\n", "Birds then quickly a dog under,  über %20 <s> zebra!\n", ""):
        ids = np.concatenate([[tokenizer.end], tokenizer.encode(text), [tokenizer.end]]).astype(np.int64)
        ours = np.log10(tables.probabilities(ids))[1:]
        theirs = scores(peer, [words[token] for token in ids[1:]])
        np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0)
        together = peer.score(" ".join(words[token] for token in ids[1:-1]))
        assert ours.sum() == pytest.approx(together, abs=1e-4)
        assert all(words[token] in peer for token in ids[1:])


def test_what_is_impossible_is_next_to_it_there(tmp_path):
    tokenizer, tables, words, peer = made(tmp_path / "m.arpa", "maximum-likelihood", 3, "words")
    ids = np.concatenate([[tokenizer.end], tokenizer.encode("The mat mat mat."), [tokenizer.end]]).astype(np.int64)
    ours, theirs = tables.probabilities(ids)[1:], np.array(scores(peer, [words[token] for token in ids[1:]]))
    assert (ours == 0).any() and (theirs[ours == 0] < -90).all()
    np.testing.assert_allclose(np.log10(ours[ours > 0]), theirs[ours > 0], atol=1e-5)


KENLMS = """\\data\\
ngram 1=5
ngram 2=4
ngram 3=2

\\1-grams:
-1.2\t<unk>\t0
0\t<s>\t-0.3
-0.9\t</s>\t0
-0.4\tred\t-0.2
-0.5\tfox\t-0.1

\\2-grams:
-0.2\t<s> red\t-0.05
-0.3\tred fox\t-0.15
-0.25\tfox </s>\t0
-0.6\tred red\t0

\\3-grams:
-0.1\t<s> red fox
-0.2\tred fox </s>

\\end\\
"""


def test_a_file_from_elsewhere_gives_the_same_scores_here(tmp_path):
    path = tmp_path / "theirs.arpa"
    path.write_text(KENLMS)
    peer, found = kenlm.Model(str(path)), read_arpa(path)
    model = NGramConfig(vocab_size=len(found.words), order=3, end=found.end).with_tables(found.tables)
    for text in ("red fox", "fox red red fox", "red zebra fox", ""):
        words = [*text.split(), "</s>"]
        ids = [found.end, *(found.words.index(w) if w in found.words else found.unknown for w in words)]
        ours = np.log10(model.tables.probabilities(np.array(ids)))[1:]
        np.testing.assert_allclose(ours, [p for p, *_ in peer.full_scores(text)], atol=1e-5)
