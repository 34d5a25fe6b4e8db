"""The same numbers as torch's own modules with the same weights: forward and gradients, float64, 1e-9."""

import pytest
import torch
from torch import nn

from weft.blocks import (
    CAUSAL,
    Attention,
    FeedForward,
    LayerNorm,
    Layers,
    Mask,
    PostNorm,
    PreNorm,
    SoftmaxAttention,
    TransformerLayer,
)
from weft.weights import Row, WeightTable

WIDTH, HEADS, HIDDEN = 24, 4, 40
MAPS = ("query", "key", "value")


def attention_rows(foreign, ours):
    return [
        row
        for part in ("weight", "bias")
        for row in (
            Row(f"{foreign}in_proj_{part}", tuple(f"{ours}{name}.{part}" for name in MAPS)),
            Row(f"{foreign}out_proj.{part}", f"{ours}output.{part}"),
        )
    ]


def layer_rows(foreign, ours, decoder):
    parts = {
        "linear1": "feed_forward.up",
        "linear2": "feed_forward.down",
        "norm1": "attention_residual.norm",
        "norm3" if decoder else "norm2": "feed_forward_residual.norm",
    }
    if decoder:
        parts["norm2"] = "cross_residual.norm"
    rows = [Row(f"{foreign}{a}.{p}", f"{ours}{b}.{p}") for a, b in parts.items() for p in ("weight", "bias")]
    rows += attention_rows(f"{foreign}self_attn.", f"{ours}attention.")
    return rows + (attention_rows(f"{foreign}multihead_attn.", f"{ours}cross_attention.") if decoder else [])


ATTENTION = WeightTable(*attention_rows("", ""))
ENCODER_LAYER = WeightTable(*layer_rows("", "", decoder=False))
DECODER_LAYER = WeightTable(*layer_rows("", "", decoder=True))
TRANSFORMER = WeightTable(
    *layer_rows("encoder.layers.{layer}.", "encoder.{layer}.", decoder=False),
    *layer_rows("decoder.layers.{layer}.", "decoder.{layer}.", decoder=True),
    *[Row(f"{side}.norm.{p}", f"{side}_norm.{p}") for side in ("encoder", "decoder") for p in ("weight", "bias")],
)


def our_attention():
    return Attention(WIDTH, heads=HEADS, core=SoftmaxAttention())


def our_layer(residual, decoder=False):
    return TransformerLayer(
        attention=our_attention(),
        attention_residual=residual(LayerNorm(WIDTH)),
        feed_forward=FeedForward(WIDTH, HIDDEN, activation="relu"),
        feed_forward_residual=residual(LayerNorm(WIDTH)),
        cross_attention=our_attention() if decoder else None,
        cross_residual=residual(LayerNorm(WIDTH)) if decoder else None,
    )


class OurTransformer(nn.Module):
    """nn.Transformer's arrangement: two stacks, each closed by a norm."""

    def __init__(self, residual, depth):
        super().__init__()
        self.encoder = Layers(our_layer(residual) for _ in range(depth))
        self.decoder = Layers(our_layer(residual, decoder=True) for _ in range(depth))
        self.encoder_norm, self.decoder_norm = LayerNorm(WIDTH), LayerNorm(WIDTH)

    def forward(self, source, target, keep):
        memory = self.encoder_norm(self.encoder(source, mask=Mask(keep=keep)))
        return self.decoder_norm(self.decoder(target, mask=CAUSAL, memory=memory, memory_mask=Mask(keep=keep)))


def load(ours, theirs, table):
    """Their random weights (biases and norms too) into ours; the table is total in both directions."""
    for p in theirs.parameters():
        nn.init.normal_(p, std=0.3)
    state = table.read(theirs.state_dict(), {name: t.shape for name, t in ours.state_dict().items()})
    ours.load_state_dict(state)
    back = table.write(ours.state_dict())
    assert back.keys() == theirs.state_dict().keys()
    assert all(torch.equal(back[name], t) for name, t in theirs.state_dict().items())


def assert_same(ours, theirs, table, run_ours, run_theirs, inputs, rows=None):
    """Outputs, gradients of every input, and gradients of every parameter through the table."""
    upstream = None
    results = []
    for module, run in ((ours, run_ours), (theirs, run_theirs)):
        leaves = [x.detach().clone().requires_grad_() for x in inputs]
        out = run(*leaves)
        if rows is not None:
            out = out[rows]
        upstream = torch.randn_like(out) if upstream is None else upstream
        module.zero_grad()
        out.backward(upstream)
        results.append((out.detach(), [leaf.grad for leaf in leaves]))
    (our_out, our_inputs), (their_out, their_inputs) = results
    assert (our_out - their_out).abs().max() < 1e-9
    assert all((a - b).abs().max() < 1e-9 for a, b in zip(our_inputs, their_inputs, strict=True))
    mine = table.write({name: p.grad for name, p in ours.named_parameters()})
    for name, p in theirs.named_parameters():
        assert (mine[name] - p.grad).abs().max() < 1e-9, name


def tensors(*lengths):
    return [torch.randn(3, n, WIDTH, dtype=torch.float64) for n in lengths]


def some_keep(length):
    keep = torch.ones(3, length, dtype=torch.bool)
    keep[1, length // 2 :] = False
    keep[2, length - 1 :] = False
    return keep


@pytest.fixture(autouse=True)
def _no_fast_path():
    """torch's inference fast path has its own kernels; the documented module is what we compare with."""
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(True)


@pytest.mark.parametrize("case", ["everything", "causal", "padding", "both", "bias", "cross", "cross-padding"])
def test_multi_head_attention(case):
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).double()
    ours = our_attention().double()
    load(ours, theirs, ATTENTION)
    cross = case.startswith("cross")
    inputs = tensors(7, 9) if cross else tensors(9)
    keep = some_keep(9) if case in ("padding", "both", "cross-padding") else None
    future = torch.ones(9, 9, dtype=torch.bool).triu(1) if case in ("causal", "both") else None
    bias = torch.randn(9, 9, dtype=torch.float64) if case == "bias" else None

    def run_theirs(x, memory=None):
        memory = x if memory is None else memory
        padding = None if keep is None else ~keep
        return theirs(x, memory, memory, key_padding_mask=padding, attn_mask=future if bias is None else bias)[0]

    def run_ours(x, memory=None):
        return ours(x, memory, mask=Mask(causal=future is not None, keep=keep, bias=bias))

    # ours takes nothing from padded places, also where they ask; compare the real ones
    rows = keep if keep is not None and not cross else None
    assert_same(ours, theirs, ATTENTION, run_ours, run_theirs, inputs, rows)


@pytest.mark.parametrize("residual", [PreNorm, PostNorm])
@pytest.mark.parametrize("causal", [False, True])
def test_encoder_layer(residual, causal):
    first = residual is PreNorm
    theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=first).double()
    ours = our_layer(residual).double()
    load(ours, theirs, ENCODER_LAYER)
    keep = some_keep(9)
    future = torch.ones(9, 9, dtype=torch.bool).triu(1) if causal else None
    assert_same(
        ours,
        theirs,
        ENCODER_LAYER,
        lambda x: ours(x, mask=Mask(causal=causal, keep=keep)),
        lambda x: theirs(x, src_mask=future, src_key_padding_mask=~keep),
        tensors(9),
        keep,
    )


@pytest.mark.parametrize("residual", [PreNorm, PostNorm])
def test_decoder_layer(residual):
    first = residual is PreNorm
    theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=first).double()
    ours = our_layer(residual, decoder=True).double()
    load(ours, theirs, DECODER_LAYER)
    keep = some_keep(9)
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    assert_same(
        ours,
        theirs,
        DECODER_LAYER,
        lambda x, memory: ours(x, mask=CAUSAL, memory=memory, memory_mask=Mask(keep=keep)),
        lambda x, memory: theirs(x, memory, tgt_mask=future, memory_key_padding_mask=~keep),
        tensors(7, 9),
    )


@pytest.mark.parametrize("residual", [PreNorm, PostNorm])
def test_whole_transformer(residual):
    theirs = nn.Transformer(
        WIDTH, HEADS, 3, 3, HIDDEN, dropout=0.0, batch_first=True, norm_first=residual is PreNorm
    ).double()
    ours = OurTransformer(residual, 3).double()
    load(ours, theirs, TRANSFORMER)
    keep = some_keep(9)
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    assert_same(
        ours,
        theirs,
        TRANSFORMER,
        lambda source, target: ours(source, target, keep),
        lambda source, target: theirs(
            source, target, tgt_mask=future, src_key_padding_mask=~keep, memory_key_padding_mask=~keep
        ),
        tensors(9, 7),
    )
