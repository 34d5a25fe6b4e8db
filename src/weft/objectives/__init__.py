"""What a model's result is worth: losses as a sum and how many were summed, metrics, and calibration.

Names are loaded when they are first used: the metrics need no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazy

if TYPE_CHECKING:
    from weft.objectives.calibration import fit_temperature as fit_temperature
    from weft.objectives.calibration import negative_log_likelihood as negative_log_likelihood
    from weft.objectives.causal import causal_loss as causal_loss
    from weft.objectives.classification import Classification as Classification
    from weft.objectives.classification import ClassifyConfig as ClassifyConfig
    from weft.objectives.classification import LabelledRow as LabelledRow
    from weft.objectives.metrics import ClassScores as ClassScores
    from weft.objectives.metrics import accuracy as accuracy
    from weft.objectives.metrics import class_scores as class_scores
    from weft.objectives.metrics import confusion_matrix as confusion_matrix
    from weft.objectives.metrics import exact_match as exact_match
    from weft.objectives.metrics import expected_calibration_error as expected_calibration_error
    from weft.objectives.metrics import macro_f1 as macro_f1
    from weft.objectives.metrics import mean_squared_error as mean_squared_error
    from weft.objectives.metrics import micro_f1 as micro_f1
    from weft.objectives.metrics import multilabel_macro_f1 as multilabel_macro_f1
    from weft.objectives.metrics import multilabel_scores as multilabel_scores
    from weft.objectives.metrics import pearson as pearson
    from weft.objectives.metrics import spearman as spearman
    from weft.objectives.pretraining import ObjectiveConfig as ObjectiveConfig
    from weft.objectives.pretraining import PretrainingBatch as PretrainingBatch
    from weft.objectives.pretraining import pretraining_loss as pretraining_loss
    from weft.objectives.recurrent_state import RecurrentLoss as RecurrentLoss
    from weft.objectives.recurrent_state import StretchBatch as StretchBatch
    from weft.objectives.spans import SpanConfig as SpanConfig
    from weft.objectives.spans import spans_loss as spans_loss
    from weft.objectives.token_classification import TaggedRow as TaggedRow
    from weft.objectives.token_classification import TokenClassification as TokenClassification
    from weft.objectives.token_classification import TokenClassifyConfig as TokenClassifyConfig

_HOME = {
    "RecurrentLoss": "recurrent_state",
    "ClassScores": "metrics",
    "Classification": "classification",
    "ClassifyConfig": "classification",
    "LabelledRow": "classification",
    "ObjectiveConfig": "pretraining",
    "PretrainingBatch": "pretraining",
    "SpanConfig": "spans",
    "StretchBatch": "recurrent_state",
    "TaggedRow": "token_classification",
    "TokenClassification": "token_classification",
    "TokenClassifyConfig": "token_classification",
    "accuracy": "metrics",
    "causal_loss": "causal",
    "class_scores": "metrics",
    "confusion_matrix": "metrics",
    "exact_match": "metrics",
    "expected_calibration_error": "metrics",
    "fit_temperature": "calibration",
    "macro_f1": "metrics",
    "mean_squared_error": "metrics",
    "micro_f1": "metrics",
    "negative_log_likelihood": "calibration",
    "pearson": "metrics",
    "pretraining_loss": "pretraining",
    "multilabel_macro_f1": "metrics",
    "multilabel_scores": "metrics",
    "spans_loss": "spans",
    "spearman": "metrics",
}

__all__ = [
    "ClassScores",
    "Classification",
    "ClassifyConfig",
    "LabelledRow",
    "ObjectiveConfig",
    "PretrainingBatch",
    "RecurrentLoss",
    "SpanConfig",
    "StretchBatch",
    "TaggedRow",
    "TokenClassification",
    "TokenClassifyConfig",
    "accuracy",
    "causal_loss",
    "class_scores",
    "confusion_matrix",
    "exact_match",
    "expected_calibration_error",
    "fit_temperature",
    "macro_f1",
    "mean_squared_error",
    "micro_f1",
    "multilabel_macro_f1",
    "multilabel_scores",
    "negative_log_likelihood",
    "pearson",
    "pretraining_loss",
    "spans_loss",
    "spearman",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
