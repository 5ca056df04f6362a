"""Sound for whisper: 30 seconds for the encoder, a transcript for the decoder."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

from isoscope.capture.feed.base import Feed
from isoscope.capture.feed.batch import Batch, Prepared
from isoscope.capture.feed.given import Given, Loaded
from isoscope.capture.feed.layout import FrameLayout, TokenLayout, within
from isoscope.capture.feed.pad import stacked
from isoscope.capture.feed.sound import extractor, samples_of
from isoscope.errors import ConfigError
from isoscope.site import DECODER, ENCODER
from isoscope.types import Array

GREEDY = 64  # tokens at most that the model writes where there is no transcript
ENGLISH = 51864  # tokens of the models that know English only


class WhisperFeed(Feed):
    """Spectra of 30 seconds, of which the frames of the clip count, and a transcript.

    The decoder reads the document's target, or else what the model itself writes, greedily;
    before it the tokens that ask for a transcript, which are special. The encoder hears 30
    seconds whatever the clip, without a mask, so clips of all lengths stand side by side.
    """

    def __init__(self, loaded: Loaded, *, length: int) -> None:
        super().__init__(loaded.body)
        self.model: Any = loaded.model
        self.tokenizer = loaded.tokenizer
        self.extractor = extractor(loaded)
        self.config: Any = loaded.body.config
        self.generation: Any = self.model.generation_config
        self.limit = min(length, int(self.config.max_target_positions))
        self.ends = _ids(self.config.eos_token_id)
        self.special = np.array(sorted(self._special_ids()), dtype=np.int64)
        # What the model wrote for a clip: writing takes longer than the pass that follows,
        # and a document is made ready once to be counted and once to be run.
        self._heard: dict[str, tuple[Array, bool]] = {}

    def prepare(self, document: Given) -> Prepared | None:
        """Return the clip and its transcript made ready; None if shorter than two frames."""
        rate = int(self.extractor.sampling_rate)
        samples = samples_of(document, rate)
        heard = samples[: int(self.extractor.n_samples)]
        frames = -(-len(heard) // (2 * int(self.extractor.hop_length)))
        if frames < 2:
            return None
        ready = self.extractor(heard, sampling_rate=rate, return_tensors="np")
        features = np.asarray(ready["input_features"][0], dtype=np.float32)
        key = blake2b(features.data, digest_size=16).hexdigest() + (document.target or "")
        if key not in self._heard:
            self._heard[key] = self._transcript(document, features)
        ids, cut = self._heard[key]
        special = np.isin(ids, self.special)
        return Prepared(
            document.id,
            {"input_features": features, "decoder_input_ids": ids},
            length=frames,
            cost=int(self.config.max_source_positions),
            truncated=cut or len(samples) > len(heard),
            special={DECODER: special},
        )

    def joined(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the clips side by side with their transcripts."""
        features = np.stack([each.inputs["input_features"] for each in prepared])
        rows = [each.inputs["decoder_input_ids"] for each in prepared]
        fill = int(self.config.pad_token_id or 0)
        tokens = stacked(rows, fill=fill, device=self.device)
        real = within([len(row) for row in rows], tokens.shape[1], self.device)
        special = stacked([each.special[DECODER] for each in prepared], device=self.device)
        inputs = {
            "input_features": self._features(features),
            "decoder_input_ids": tokens,
            "decoder_attention_mask": real.long(),
        }
        counts = tuple(each.length for each in prepared)
        total = int(self.config.max_source_positions)
        encoder = FrameLayout(counts, total, self.device)
        decoder = TokenLayout(real, special, tokens)
        documents = tuple(each.id for each in prepared)
        return Batch(inputs, documents, {ENCODER: encoder, DECODER: decoder})

    def _transcript(self, document: Given, features: Array) -> tuple[Array, bool]:
        given = (document.target or "").strip()
        if given and self.tokenizer is None:
            raise ConfigError(
                "expected a tokenizer for the transcripts, got none",
                hint="put tokenizer.json into the model's folder, or leave the transcripts out",
                slug="tokenizer-missing",
            )
        asked = self._asked(features)
        if given:
            text = self.tokenizer(f" {given}", add_special_tokens=False)["input_ids"]
        else:
            text = self._written(features, asked)
        room = max(0, self.limit - len(asked))
        return np.array([*asked, *text[:room]], dtype=np.int64), bool(given) and len(
            text
        ) > room

    def _asked(self, features: Array) -> list[int]:
        """Return the tokens that ask for a transcript in the language of the clip."""
        tokens = [self._start()]
        if self._multilingual():
            tokens += self._language(features)
            tokens += self._task()
        return tokens + self._without_times()

    def _written(self, features: Array, asked: list[int]) -> list[int]:
        settings = deepcopy(self.generation)
        room = min(self.limit, int(self.config.max_target_positions)) - len(asked)
        settings.max_length = None
        settings.max_new_tokens = max(1, min(GREEDY, room))
        settings.do_sample, settings.num_beams, settings.return_timestamps = False, 1, False
        with _quiet(), torch.no_grad():
            found = self.model.generate(
                self._features(features[None]),
                generation_config=settings,
                decoder_input_ids=torch.tensor([asked], device=self.device),
            )
        written = [int(each) for each in found[0].tolist()]
        if written[: len(asked)] == asked:  # some versions give back what they were given
            written = written[len(asked) :]
        end = next((n for n, each in enumerate(written) if each in self.ends), len(written))
        return written[: min(end, GREEDY)]

    def _language(self, features: Array) -> list[int]:
        languages: dict[str, int] = getattr(self.generation, "lang_to_id", None) or {}
        if not languages:
            return self._named("<|en|>")
        with torch.no_grad():
            found = self.model.detect_language(
                input_features=self._features(features[None]),
                generation_config=self.generation,
                num_segment_frames=features.shape[-1],
            )
        return [int(found[0])]

    def _features(self, features: Array) -> torch.Tensor:
        return torch.from_numpy(features).to(self.device, self.dtype)

    def _start(self) -> int:
        return int(self.config.decoder_start_token_id)

    def _task(self) -> list[int]:
        tasks = getattr(self.generation, "task_to_id", None) or {}
        return [int(tasks["transcribe"])] if tasks else self._named("<|transcribe|>")

    def _without_times(self) -> list[int]:
        known = getattr(self.generation, "no_timestamps_token_id", None)
        return self._named("<|notimestamps|>") if known is None else [int(known)]

    def _named(self, token: str) -> list[int]:
        known = {} if self.tokenizer is None else self.tokenizer.get_vocab()
        return [known[token]] if token in known else []

    def _multilingual(self) -> bool:
        known = getattr(self.generation, "is_multilingual", None)
        return int(self.config.vocab_size) > ENGLISH if known is None else bool(known)

    def _special_ids(self) -> set[int]:
        languages = getattr(self.generation, "lang_to_id", None) or {}
        tasks = getattr(self.generation, "task_to_id", None) or {}
        found = {self._start(), *self._without_times(), *languages.values(), *tasks.values()}
        found |= {int(each) for each in getattr(self.tokenizer, "all_special_ids", [])}
        return found | self.ends | {*self._named("<|en|>"), *self._task()}


def _ids(value: Any) -> set[int]:
    return {int(each) for each in (value if isinstance(value, list) else [value])}


@contextmanager
def _quiet() -> Generator[None]:
    """Keep transformers from remarks on settings that are its own."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)
