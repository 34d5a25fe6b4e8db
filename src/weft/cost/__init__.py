"""What a model will cost before it is trained: parameters, operations, memory."""

from weft.cost.bag_of_words import bag_of_words_cost
from weft.cost.language_model import Cost, cost_of
from weft.cost.picture_model import picture_cost
from weft.cost.recurrent import recurrent_cost
from weft.cost.recurrent_pairs import recurrent_pair_cost
from weft.cost.word_vectors import word_vector_cost

__all__ = [
    "Cost",
    "bag_of_words_cost",
    "cost_of",
    "picture_cost",
    "recurrent_cost",
    "recurrent_pair_cost",
    "word_vector_cost",
]
