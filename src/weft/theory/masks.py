"""Claims about masks: which a family uses where, and the two ways to apply one."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from weft.blocks import Attention, Mask, renormalise, softargmax
from weft.models import ModelConfig
from weft.theory.claim import Chart, Evidence, claim, evidence, table, value
from weft.theory.counting import largest
from weft.theory.prediction import AtLeast, Near

SIZES: dict[str, Any] = {"vocab_size": 11, "width": 16, "depth": 1, "attention": {"kind": "softmax", "heads": 2}}


def _model(family: str, **more: Any) -> Any:
    """A small one; zero at the end of its branches would hide what attention does."""
    model = ModelConfig.registry[family](**SIZES | more).build().eval()
    for p in model.parameters():
        if not p.any():
            nn.init.normal_(p, std=0.1)
    return model


def _masks(model: nn.Module, *inputs: Any, **more: Any) -> dict[str, str]:
    """What each attention of the model was told, in words: found by listening while it runs."""
    heard: dict[str, str] = {}

    def listen(name: str) -> Any:
        def hook(_: nn.Module, __: Any, told: dict[str, Any]) -> None:
            mask: Mask = told["mask"]
            parts = ["key padding"] * (mask.keep is not None) + ["causal"] * mask.causal
            heard[name] = " and ".join(parts) or "none"

        return hook

    hooks = [
        module.register_forward_pre_hook(listen(name), with_kwargs=True)
        for name, module in model.named_modules()
        if isinstance(module, Attention)
    ]
    with torch.no_grad():
        model(*inputs, **more)
    for hook in hooks:
        hook.remove()
    return heard


@claim(
    "T20",
    "Which masks go where",
    says="""BERT: key padding in the encoder. GPT: causal alone; with padding on the right no key padding mask is
    needed. T5: key padding in the encoder and in cross-attention, causal in the decoder, which needs no key padding
    mask as long as padding is on the right.""",
    document="003",
    where="question 2 (b)",
    seconds=0.3,
)
def families() -> Evidence:
    """The masks that models build themselves for padded texts."""
    tokens = torch.randint(1, 11, (2, 7))
    keep = torch.arange(7) < torch.tensor([[7], [4]])
    bert, gpt, t5 = _model("bert"), _model("gpt", max_length=16), _model("t5")
    of_bert = _masks(bert, tokens, keep=keep)
    of_gpt = _masks(gpt, tokens)
    of_t5 = _masks(t5, tokens, tokens, source_keep=keep)
    with torch.no_grad():
        plain, told = gpt(tokens), gpt(tokens, keep=keep)
        left, left_told = gpt(tokens.flip(1)), gpt(tokens.flip(1), keep=keep.flip(1))
        read, unread = bert(tokens, keep=keep), bert(tokens)
    wanted = {
        ("BERT", "layers.0.attention"): (of_bert, "key padding"),
        ("GPT", "layers.0.attention"): (of_gpt, "causal"),
        ("T5", "encoder.layers.0.attention"): (of_t5, "key padding"),
        ("T5", "decoder.layers.0.attention"): (of_t5, "causal"),
        ("T5", "decoder.layers.0.cross_attention"): (of_t5, "key padding"),
    }
    places = {"encoder": "encoder", "cross_attention": "cross-attention", "decoder": "decoder"}
    values = []
    for (family, name), (heard, expected) in wanted.items():
        place = next((words for part, words in places.items() if part in name.split(".")[::-1]), "")
        place = "cross-attention" if "cross" in name else place
        values.append(value(f"{family} {place}".strip(), heard[name], document=expected))
    return evidence(
        *values,
        value(
            "GPT, padded on the right: real tokens with − without a padding mask",
            largest((plain - told)[keep]),
            document=Near(0, 1e-11),
        ),
        value("GPT, padded on the left: the same", largest((left - left_told)[keep.flip(1)]), right=AtLeast(1e-3)),
        value("BERT, padded on the right: the same", largest((read - unread)[keep]), right=AtLeast(1e-3)),
        says="""So do the models here, shown by what their attentions are told. Causal with right padding needs no
        padding mask for the real tokens, which never look ahead; what stands at the padding means nothing then. With
        padding on the left it is needed.""",
        brief=5,
        show=[
            table(
                "Masks of padded texts",
                ("family", "attention", "mask"),
                [(family, name, heard[name]) for (family, name), (heard, _) in wanted.items()],
            )
        ],
    )


@claim(
    "T24",
    "The two ways to mask",
    says="""Future tokens can be hidden in two ways: scores of −∞ before the softmax, or softmax as usual, then weights
    set to 0 and the rest normalised.""",
    document="004",
    where="section 4",
)
def two_ways() -> Evidence:
    """In float32, with forbidden scores that lead by more and more."""
    allowed = torch.tensor([True, True, True, False])
    scores = torch.tensor([0.3, -0.5, 1.1, 0.0], dtype=torch.float32)

    def apart(lead: float) -> float:
        s = scores.clone()
        s[3] = 1.1 + lead
        return largest(softargmax(s, 1.0, allowed) - renormalise(softargmax(s), allowed))

    leads = [float(n) for n in range(141)]
    fails = next(lead for lead in leads if apart(lead) > 1e-3)
    return evidence(
        value(
            "difference where the hidden score leads by 120", apart(120.0), document=Near(0, 1e-6), right=AtLeast(0.1)
        ),
        value("difference where it leads by 20", apart(20.0), document=Near(0, 1e-6)),
        value("difference where it leads by 0", apart(0.0), document=Near(0, 1e-6)),
        value("the first lead at which they differ by more than a thousandth", fails, right=Near(90, share=0.15)),
        says="""They agree to rounding, until the forbidden scores lead by so much that the allowed weights underflow,
        between 80 and 100 in float32: then zero-and-renormalise has nothing left to normalise and gives 0, while −∞
        before the softmax is right at any lead.""",
        brief=2,
        show=[
            Chart(
                "−∞ before softmax against zero after it, float32",
                "lead of the forbidden score",
                "largest difference",
                {"difference": [(lead, max(apart(lead), 1e-9)) for lead in leads[::4]]},
                log_up=True,
            )
        ],
    )
