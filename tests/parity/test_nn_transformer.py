"""The Transformer's two stacks against torch.nn's with the same weights: float64, states and gradients to 1e-9."""

import pytest
import torch
from torch import nn

from fixtures.weights import move_weights
from weft.models import TransformerConfig
from weft.weights import Row, WeightTable

WIDTH, HEADS, HIDDEN, DEPTH = 24, 4, 40, 2
MAPS = ("query", "key", "value")
PLACES = {"norm_first": True, "post-norm": False}


def attention_rows(foreign, ours):
    for part in ("weight", "bias"):
        yield Row(f"{foreign}.in_proj_{part}", tuple(f"{ours}.{name}.{part}" for name in MAPS))
        yield Row(f"{foreign}.out_proj.{part}", f"{ours}.output.{part}")


def table(stack, last_norm):
    """nn.TransformerEncoder or nn.TransformerDecoder ⇄ our `encoder` or `decoder`."""
    theirs, ours, writes = "layers.{layer}.", f"{stack}.layers.{{layer}}.", stack == "decoder"
    parts = {"linear1": "feed_forward.up", "linear2": "feed_forward.down", "norm1": "attention_residual.norm"}
    parts |= {"norm3" if writes else "norm2": "feed_forward_residual.norm"} | (
        {"norm2": "cross_residual.norm"} if writes else {}
    )
    rows = [Row(f"{theirs}{a}.{p}", f"{ours}{b}.{p}") for a, b in parts.items() for p in ("weight", "bias")]
    rows += attention_rows(theirs + "self_attn", ours + "attention")
    rows += attention_rows(theirs + "multihead_attn", ours + "cross_attention") if writes else ()
    rows += [Row(f"norm.{p}", f"{stack}.norm.{p}") for p in ("weight", "bias")] if last_norm else []
    return WeightTable(*rows)


def our_model(norm_first):
    parts = {"attention": {"kind": "softmax", "heads": HEADS}, "feed_forward": {"kind": "plain", "ff_width": HIDDEN}}
    parts["feed_forward"]["activation"] = "relu"
    fields = {"norm": "layer", "position": "sinusoidal", "qk_norm": False, "norm_first": norm_first, "dropout": 0.0}
    model = TransformerConfig(vocab_size=19, width=WIDTH, depth=DEPTH, **parts, **fields).build().double()
    torch.manual_seed(1)
    move_weights(model)
    return model


def their_stacks(model, norm_first):
    """Both stacks with our weights; where norms come last, a stack has none of its own at the end."""
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first, "dtype": torch.float64}
    stacks = {}
    for name, layer, stack in (
        ("encoder", nn.TransformerEncoderLayer, nn.TransformerEncoder),
        ("decoder", nn.TransformerDecoderLayer, nn.TransformerDecoder),
    ):
        last = nn.LayerNorm(WIDTH, dtype=torch.float64) if norm_first else None
        more = {"enable_nested_tensor": False} if name == "encoder" else {}
        made = stack(layer(WIDTH, HEADS, HIDDEN, **options), DEPTH, norm=last, **more)
        state = {n: p for n, p in model.named_parameters() if n.startswith(f"{name}.")}
        made.load_state_dict({n: t.detach().clone() for n, t in table(name, norm_first).write(state).items()})
        stacks[name] = made
    return stacks


def batch():
    torch.manual_seed(2)
    keep = torch.arange(9) < torch.tensor([9, 5, 1])[:, None]
    written = torch.arange(7) < torch.tensor([4, 7, 6])[:, None]
    return torch.randint(19, (3, 9)), keep, torch.randint(19, (3, 7)), written


def embedded(model, tokens, stack):
    return stack.position.at_input(model.embedding(model.tokens(tokens)), torch.arange(tokens.shape[1]))


def their_states(model, stacks, source, keep, target, written):
    """Memory and states by torch's modules; its masks say what is hidden, ours what is kept."""
    memory = stacks["encoder"](embedded(model, source, model.encoder), src_key_padding_mask=~keep)
    later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
    states = stacks["decoder"](
        embedded(model, target, model.decoder),
        memory,
        tgt_mask=later,
        tgt_key_padding_mask=~written,
        memory_key_padding_mask=~keep,
    )
    return memory[keep], states[written]


def our_states(model, source, keep, target, written):
    memory = model.encode(source, keep)
    return memory.states[keep], model.states(target, memory, keep=written)[written]


def compute_gradients(results, parameters):
    torch.manual_seed(3)
    loss = sum((value * torch.randn_like(value)).sum() for value in results)
    found = torch.autograd.grad(loss, list(parameters.values()), retain_graph=True)
    return dict(zip(parameters, found, strict=True))


@pytest.mark.parametrize("place", PLACES)
def test_states_and_gradients_are_those_of_torch(place):
    model = our_model(PLACES[place])
    stacks, given = their_stacks(model, PLACES[place]), batch()
    found, expected = our_states(model, *given), their_states(model, stacks, *given)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours - theirs).abs().max() < 1e-9 and theirs.abs().max() > 0.5

    for name, stack in stacks.items():
        own = {n: p for n, p in model.named_parameters() if n.startswith(f"{name}.")}
        mine = table(name, PLACES[place]).write(compute_gradients(found, own))
        for parameter, gradient in compute_gradients(expected, dict(stack.named_parameters())).items():
            assert (mine[parameter] - gradient).abs().max() < 1e-9 * max(1.0, float(gradient.abs().max())), parameter


@pytest.mark.parametrize("place", PLACES)
def test_each_mask_matters(place):
    """Negative controls: without one of the masks, or with norms in the other place, the numbers differ."""
    model = our_model(PLACES[place])
    stacks, (source, keep, target, written) = their_stacks(model, PLACES[place]), batch()
    with torch.no_grad():
        expected = their_states(model, stacks, source, keep, target, written)[1]
        memory = model.encode(source, keep)
        everything = model.encode(source)
        assert (model.states(target, everything)[written] - expected).abs().max() > 1e-3
        blind = type(memory)(memory.states, None)
        assert (model.states(target, blind, keep=written)[written] - expected).abs().max() > 1e-3
        ahead = target.clone()
        ahead[:, -1] = (ahead[:, -1] + 1) % 19
        same = model.states(ahead, memory, keep=written)[:, :-1][written[:, :-1]]
        assert torch.equal(same, model.states(target, memory, keep=written)[:, :-1][written[:, :-1]])
        other = our_model(not PLACES[place])
        other.load_state_dict(model.state_dict(), strict=False)
        assert (our_states(other, source, keep, target, written)[1] - expected).abs().max() > 1e-3


@pytest.mark.parametrize("place", PLACES)
def test_step_by_step_is_torchs_whole(place):
    model = our_model(PLACES[place])
    stacks, (source, keep, target, _) = their_stacks(model, PLACES[place]), batch()
    with torch.no_grad():
        all_written = torch.ones_like(target, dtype=torch.bool)
        expected = their_states(model, stacks, source, keep, target, all_written)[1].view(*target.shape, -1)
        memory, caches = model.encode(source, keep), model.new_caches()
        found = torch.cat([model.states(part, memory, caches=caches) for part in target.split([3, 1, 2, 1], 1)], 1)
    assert (found - expected).abs().max() < 1e-9
