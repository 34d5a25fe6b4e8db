"""The loss of word2vec, written plainly: the compiled loop computes the same, example after example.

Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their Compositionality", equation 4.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.models.word2vec.examples import Word2VecExamples
from weft.models.word2vec.model import Word2Vec


def word_vector_loss(model: Word2Vec, examples: Word2VecExamples) -> tuple[Tensor, int]:
    """The summed loss of the examples, and how many there are.

    With negatives: −log σ(s) of the right word's score and −log σ(−s) of each that was drawn. Without: the negative
    log-probability of the right word among all.
    """
    context, keep = torch.from_numpy(examples.context), torch.from_numpy(examples.context_keep)
    words, counts = torch.from_numpy(examples.words), torch.from_numpy(examples.words_keep)
    if not model.config.negative:
        return F.cross_entropy(model(context, keep), words[:, 0], reduction="sum"), len(words)
    scores = model(context, keep, words)
    signs = torch.full_like(scores, -1.0)
    signs[:, 0] = 1.0
    return -(F.logsigmoid(signs * scores) * counts).sum(), len(words)
