"""A model put together from its folder: configuration, network, tokenizer, identity."""

from collections.abc import Callable
from dataclasses import dataclass

from isoscope.capture.model.body import body_of, takes
from isoscope.capture.model.config import class_of, config_of
from isoscope.capture.model.files import sha_of_files
from isoscope.capture.model.identity import identity_of
from isoscope.capture.model.loaded import Loaded
from isoscope.capture.model.network import Where, sha_of_weights, trained, untrained
from isoscope.capture.model.place import Place
from isoscope.capture.model.pooling import pooling_of
from isoscope.capture.model.processor import processor_of
from isoscope.capture.model.tokens import tokenizer_of
from isoscope.capture.model.weights import weight_files


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for besides the place."""

    where: Where
    trust: bool
    seed: int | None  # of random weights; None for the trained ones


def assembled(place: Place, order: Order, say: Callable[[str], None]) -> Loaded:
    """Return the model of a folder with all that belongs to it."""
    folder, pooling = pooling_of(place.folder, say=say, weights=order.seed is None)
    config = config_of(folder, place.gguf, trust=order.trust, say=say)
    kind = class_of(config, gguf=place.gguf is not None)
    if order.seed is None:
        paths = [folder / place.gguf] if place.gguf else weight_files(folder)
        gguf = place.gguf is not None
        model = trained(kind, config, paths, order.where, gguf=gguf, trust=order.trust, say=say)
        sha = sha_of_files(paths)
    else:
        model = untrained(kind, config, order.where, trust=order.trust, seed=order.seed)
        sha = sha_of_weights(model)
    tokenizer = tokenizer_of(folder, place.gguf, trust=order.trust, say=say)
    sense = takes(model)
    return Loaded(
        model=model,
        name=place.name,
        takes=sense,
        tokenizer=tokenizer,
        processor=processor_of(folder, sense, trust=order.trust, say=say),
        identity=identity_of(
            model,
            place,
            folder,
            sha=sha,
            dtype=order.where.dtype,
            seed=order.seed,
            has_tokenizer=tokenizer is not None,
        ),
        pooling=pooling,
        body=body_of(model),
    )
