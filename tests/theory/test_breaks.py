"""Each claim is about the package's own code: break the block that it is about, and it is told."""

import pytest
import torch
from torch import nn

from weft.blocks import CAUSAL, EVERYTHING, Attention, FeedForward, HardAttention, LayerNorm, Mask, SoftmaxAttention
from weft.blocks.attention import hard as hard_file
from weft.blocks.attention import softmax as softmax_file
from weft.blocks.attention.kernel import KernelAttention
from weft.blocks.attention.local import Around
from weft.blocks.attention.window import WindowAttention
from weft.blocks.feedforward import FeedForwardConfig
from weft.blocks.position import sinusoidal
from weft.blocks.recurrent import KERNELS, RecurrentLayer
from weft.models import ViT
from weft.models import decoder as gpt
from weft.theory import check, claims, masks, softmax

REAL = {
    "init": Attention.__init__,
    "project": Attention.project,
    "forward": SoftmaxAttention.forward,
    "allowed": Mask.allowed,
    "products": softmax_file.products,
    "softargmax": softmax_file.softargmax,
    "angles": sinusoidal.angles_of,
    "reset": RecurrentLayer.reset,
    "vit": ViT.__init__,
    "think": FeedForward.forward,
}


def half_the_channels(patch):
    def init(self, width, **more):
        REAL["init"](self, width, **more)
        self.query = nn.Linear(width // 2, self.query.out_features, device=self.query.weight.device)

    patch.setattr(Attention, "__init__", init)


def looks_back_only(patch):
    def forward(self, q, k, v, mask=EVERYTHING):
        return REAL["forward"](self, q, k, v, CAUSAL)

    patch.setattr(SoftmaxAttention, "forward", forward)


def heads_change_places(patch):
    patch.setattr(
        SoftmaxAttention,
        "forward",
        lambda self, q, k, v, mask=EVERYTHING: REAL["forward"](self, q, k, v, mask).roll(1, 1),
    )


def a_head_is_weaker(patch):
    def forward(self, q, k, v, mask=EVERYTHING):
        return REAL["forward"](self, q, k, v, mask) * torch.linspace(1, 0.5, q.shape[1])[:, None, None]

    patch.setattr(SoftmaxAttention, "forward", forward)


def hotter(patch):
    patch.setattr(softmax, "softargmax", lambda s, beta=1.0, allowed=None: REAL["softargmax"](s, 0.5 * beta, allowed))


def never_saturated(patch):
    patch.setattr(softmax, "softargmax", lambda s, beta=1.0, allowed=None: REAL["softargmax"](s.tanh(), beta, allowed))


def sees_one_ahead(patch):
    def allowed(self, asking, answering, device):
        found = REAL["allowed"](self, asking, answering, device)
        return found.roll(1, -1) | found if self.causal else found

    patch.setattr(Mask, "allowed", allowed)


def one_too_wide(patch):
    def sees(self, query, key):
        rows = query // self.columns - key // self.columns
        columns = query % self.columns - key % self.columns
        return (rows.abs() <= self.window) & (columns.abs() < self.window)

    patch.setattr(Around, "sees", sees)


def windows_are_open(patch):
    patch.setattr(WindowAttention, "forward", lambda self, q, k, v, mask=EVERYTHING: self.inside(q, k, v))


def pairs_first(patch):
    patch.setattr(KernelAttention, "forward", lambda self, q, k, v, mask=EVERYTHING: q @ k.mT @ v)


def temperature(by):
    def broken(patch):
        def scaled(beta, query):
            return by(beta, query.shape[-1])

        patch.setattr(softmax_file, "inverse_temperature", scaled)

    return broken


upside_down = temperature(lambda beta, width: 1 / width if beta is None else 1 / max(beta, 1e-3))
too_hot = temperature(lambda beta, width: 1 / width if beta is None else beta / 2)


def opposite(patch):
    patch.setattr(softmax_file, "products", lambda q, k: -REAL["products"](q, k))
    patch.setattr(hard_file, "products", lambda q, k: -REAL["products"](q, k))


def masks_are_forgotten(patch):
    patch.setattr(softmax_file, "_additive", lambda *_: (None, None))


def softly(patch):
    patch.setattr(HardAttention, "forward", lambda self, q, k, v, mask=EVERYTHING: (q @ k.mT).softmax(-1) @ v)


def one_map_more(patch):
    def project(self, x, memory):
        self.query(x)
        return REAL["project"](self, x, memory)

    patch.setattr(Attention, "project", project)


def gpt_looks_ahead(patch):
    patch.setattr(gpt, "Mask", lambda **parts: Mask(**parts | {"causal": False}))


def norm_over_the_batch(patch):
    patch.setattr(LayerNorm, "forward", lambda self, x: (x - x.mean(0)) / (x.var(0) + self.eps).sqrt())


def norm_without_a_mean(patch):
    patch.setattr(LayerNorm, "forward", lambda self, x: x / x.norm() * self.weight + self.bias)


def no_norm(patch):
    patch.setattr(LayerNorm, "forward", lambda self, x: x)


def renormalised_before(patch):
    patch.setattr(masks, "renormalise", lambda weights, allowed: torch.tensor([0.27, 0.12, 0.61, 0.0]).to(weights))


def angles_are_wider(patch):
    patch.setattr(sinusoidal, "angles_of", lambda *given: 1.01 * REAL["angles"](*given))


def thinner(patch):
    patch.setattr(FeedForwardConfig, "hidden", lambda self, width: 3 * width)


def patches_change_places(patch):
    def init(self, config):
        REAL["vit"](self, config)
        self.patches.register_forward_hook(lambda _, __, found: found.roll(1, -1))

    patch.setattr(ViT, "__init__", init)


def state_is_forgotten(patch):
    def reset(self):
        REAL["reset"](self)
        nn.init.zeros_(self.kernel.weight_hh_l0)

    patch.setattr(RecurrentLayer, "reset", reset)


def rnn_has_gates(patch):
    patch.setitem(KERNELS, "rnn", nn.GRU)


def neighbours_are_seen(patch):
    patch.setattr(FeedForward, "forward", lambda self, x: REAL["think"](self, x + 0.1 * x.roll(1, 1)))


BREAKS = {
    "T1": half_the_channels,
    "T2": looks_back_only,
    "T3": hotter,
    "T4": half_the_channels,
    "T5": sees_one_ahead,
    "T6": one_too_wide,
    "T7": windows_are_open,
    "T8": pairs_first,
    "T9": upside_down,
    "T10": too_hot,
    "T11": opposite,
    "T12": heads_change_places,
    "T13": too_hot,
    "T14": masks_are_forgotten,
    "T15": masks_are_forgotten,
    "T16": too_hot,
    "T17": never_saturated,
    "T18": softly,
    "T19": one_map_more,
    "T20": gpt_looks_ahead,
    "T21": norm_over_the_batch,
    "T22": norm_without_a_mean,
    "T23": softly,
    "T24": renormalised_before,
    "T25": angles_are_wider,
    "T26": half_the_channels,
    "T27": thinner,
    "T28": patches_change_places,
    "T29": state_is_forgotten,
    "T30": rnn_has_gates,
    "T34": opposite,
    "T35": heads_change_places,
    "T36": a_head_is_weaker,
    "T37": neighbours_are_seen,
    "T38": thinner,
    "T40": no_norm,
}


def words_mean_nothing(patch):
    from weft.models.word2vec.model import Word2Vec

    patch.setattr(Word2Vec, "hidden", lambda self, context, keep: 0 * self.input(context).mean(1))


def order_counts(patch):
    from weft.models.ngram.tables import NGramTables

    real = NGramTables.nats
    patch.setattr(NGramTables, "nats", lambda self, ids: real(self, ids) + float(ids[-1]))


BREAKS |= {"T31": words_mean_nothing, "T32": order_counts}


def test_every_claim_has_a_break():
    assert set(BREAKS) | {claim.id for claim in claims().values() if claim.on_request} == set(claims())


@pytest.mark.parametrize("id", BREAKS)
def test_a_broken_block_is_told(id, monkeypatch):
    BREAKS[id](monkeypatch)
    (finding,) = check(id)
    assert not finding.sound


# -- what trains ------------------------------------------------------------------------------


@pytest.mark.slow
def test_images_are_learned_from(monkeypatch):
    from weft.theory import images

    monkeypatch.setattr(images, "COUNTS", (40, 60))
    monkeypatch.setattr(images, "STEPS", 2)
    (finding,) = check("T33")
    assert finding.verdict in ("holds", "document is wrong") and not finding.sound  # two steps teach nothing
    assert [row[0] for row in finding.evidence.tables[0].rows] == ["40", "60"]


@pytest.mark.slow
def test_meanings_are_told_apart(monkeypatch):
    assert check("T39")[0].sound
    monkeypatch.setattr(Attention, "forward", lambda self, x, memory=None, *, mask=None, cache=None: 0 * x)
    assert not check("T39")[0].sound
