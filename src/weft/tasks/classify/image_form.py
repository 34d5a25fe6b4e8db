"""The form in which a model of images sees them: as its run recorded it, or as others wrote it down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from weft.errors import ConfigError, DataError, UnsupportedError
from weft.models.images import ImageConfig
from weft.models.preprocessing import PREPROCESSOR, Preprocessing
from weft.tasks.classify.image_data import ImageDataConfig

if TYPE_CHECKING:
    from weft.tasks.run import Run

MAX_ROWS = 8192  # rows that an image may get before the middle is cut out
FORM_FIELDS = ("size", "channels", "crop", "resample", "pixel_mean", "pixel_deviation")  # the fields that say it


def preprocessing_of(run: Run) -> Preprocessing | None:
    """What images go through before the model sees them; None for one from elsewhere of which nothing is said."""
    if run.folder is not None:
        return run.folder.preprocessing
    if run.is_imported:
        told = run.origin.get("preprocessing")
        try:
            return None if told is None else Preprocessing.from_dict(told)
        except ConfigError as error:
            raise DataError(f"{run.directory.config_file}: origin.preprocessing: {error}") from None
    data = cast(ImageDataConfig, run.config.data)
    assert data.size is not None
    return Preprocessing(
        image_size=data.size,
        mean=data.pixel_mean,
        std=data.pixel_deviation,
        resample=data.resample or "bicubic",
        crop=data.crop,
    )


def form_of(run: Run) -> ImageDataConfig:
    """Size, channels, mean and deviation of the images that a model was made for, and how they are brought to size.

    A folder from elsewhere that does not say it is refused: with a guess, the answers would be wrong, and nobody would
    know.
    """
    if not run.is_imported:
        return cast(ImageDataConfig, run.config.data)
    told = preprocessing_of(run)
    if told is None:
        raise DataError(
            f"{run.directory.path} does not say how images are prepared for it",
            expected=f"{PREPROCESSOR} beside its weights",
            advice=f"or train it on images of yours:  weft train classify FOLDER --from {run.directory.path}",
        )
    if told.image_size / (told.crop or 1) > MAX_ROWS:
        given = f"{run.directory.path}: images of {told.image_size} rows, of which {told.crop or 1:g} are left"
        raise DataError(given, expected=f"at most {MAX_ROWS}")
    channels = cast(ImageConfig, run.model_config).channels
    try:
        return ImageDataConfig(
            train=(),
            size=told.image_size,
            channels=cast(Any, channels),
            crop=told.crop,
            resample=told.resample,
            pixel_mean=_for_each(told.mean, channels),
            pixel_deviation=_for_each(told.std, channels),
        )
    except ConfigError as error:
        raise UnsupportedError(f"{run.directory.path}: {error}") from None


def _for_each(values: tuple[float, ...], channels: int) -> tuple[float, ...]:
    """A number for each channel; if there are more or fewer, they must all be the same."""
    if len(values) != channels and len(set(values)) > 1:
        raise ConfigError(f"{len(values)} means or deviations for {channels} channels", expected="one for each")
    return values if len(values) == channels else values[:1] * channels
