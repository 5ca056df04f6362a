"""Feeds of sound: the waveform for wav2vec2, hubert and their kin; spectra for whisper."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

from isoscope.capture.feed.base import (
    Batch,
    Feed,
    Prepared,
    TokenLayout,
    config_of,
    frame_marks,
    missing_processor,
    pad_rows,
    within,
    wrong_kind,
)
from isoscope.capture.feed.reader import ids_of
from isoscope.capture.model.load import Loaded, Processor
from isoscope.errors import ConfigError, SourceError
from isoscope.site import DECODER, ENCODER
from isoscope.types import Array, Document


def extractor(loaded: Loaded) -> Processor:
    """Return the feature extractor of a model, out of its processor if it is in one."""
    found = getattr(loaded.processor, "feature_extractor", loaded.processor)
    if found is None:
        raise missing_processor("audio")
    return found


def samples_of(document: Document, rate: int) -> Array:
    """Return the samples of a document as float32 at this rate."""
    content = document.content
    if not (
        isinstance(content, np.ndarray) and content.dtype.kind == "f" and content.ndim == 1
    ):
        raise wrong_kind(document, "audio")
    if document.rate <= 0:
        raise SourceError(
            f"expected a sampling rate above 0, got {document.rate} in {document.id!r}",
            hint="write the file again with its sampling rate",
            slug="audio-rate",
        )
    samples = np.ascontiguousarray(content, dtype=np.float32)
    return samples if document.rate == rate else _resample(samples, document.rate, rate)


def _resample(samples: Array, rate: int, new_rate: int) -> Array:
    try:
        import soxr
    except ImportError:
        raise ConfigError(
            f"cannot bring audio from {rate} to {new_rate} samples per second without soxr",
            hint="pip install 'isoscope[audio]'",
            slug="package-missing",
        ) from None
    return np.asarray(soxr.resample(samples, rate, new_rate), dtype=np.float32)


SECONDS = 30  # of a clip that are used, as many as whisper takes


class WaveFeed(Feed):
    """Samples in, frames out; a frame counts if all its samples are of the clip.

    Models that normalise each channel over time (`feat_extract_norm` is "group") were
    trained without a mask, and padding changes all their frames: they get neither.
    """

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded.body)
        self.extractor = extractor(loaded)
        self.config = config_of(loaded.body)
        self.mixes_lengths = getattr(self.config, "feat_extract_norm", "layer") != "group"

    def prepare(self, document: Document) -> Prepared | None:
        """Return the clip made ready, or None if it is shorter than two frames."""
        rate = int(self.extractor.sampling_rate)
        samples = samples_of(document, rate)
        clip = samples[: SECONDS * rate]
        frames = self.frames(len(clip))
        if frames < 2:
            return None
        if not self.mixes_lengths:
            # clips of as many frames become equal; no frame reaches what is cut off here
            clip = clip[: self.samples(frames)]
        ready = self.extractor(clip, sampling_rate=rate, return_tensors="np")
        values = np.asarray(ready["input_values"][0], dtype=np.float32)
        truncated = len(samples) > SECONDS * rate
        return Prepared(document.id, {"input_values": values}, frames, frames, truncated)

    def collate(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the clips side by side, silence after the shorter ones."""
        values = pad_rows(
            [each.inputs["input_values"] for each in prepared], device=self.device
        )
        inputs = {"input_values": values.to(self.dtype)}
        if self.mixes_lengths:
            counts = [len(each.inputs["input_values"]) for each in prepared]
            inputs["attention_mask"] = within(counts, values.shape[1], self.device).long()
        frames = tuple(each.length for each in prepared)
        layout = partial(frame_marks, frames, self.frames(values.shape[1]), self.device)
        return Batch(inputs, tuple(each.id for each in prepared), {"": layout})

    def frames(self, samples: int) -> int:
        """Return the number of frames of this many samples."""
        for kernel, stride in self._layers():
            samples = max(0, (samples - kernel) // stride + 1)
        return samples

    def samples(self, frames: int) -> int:
        """Return the number of samples that frames span."""
        for kernel, stride in reversed(self._layers()):
            frames = (frames - 1) * stride + kernel
        return frames

    def _layers(self) -> list[tuple[int, int]]:
        return list(zip(self.config.conv_kernel, self.config.conv_stride, strict=True))


GREEDY = 64  # tokens at most that the model writes where there is no transcript
ENGLISH = 51864  # tokens of the models that know English only


class WhisperFeed(Feed):
    """Spectra of 30 seconds, of which the frames of the clip count, and a transcript.

    The decoder reads the document's target, or else what the model itself writes, greedily;
    before it the tokens that ask for a transcript, which are special. The encoder takes 30
    seconds whatever the clip, without a mask, so clips of all lengths stand side by side.
    """

    def __init__(self, loaded: Loaded, *, length: int) -> None:
        super().__init__(loaded.body)
        self.model: Any = loaded.model
        self.tokenizer = loaded.tokenizer
        self.extractor = extractor(loaded)
        self.config = config_of(loaded.body)
        self.generation: Any = self.model.generation_config
        self.languages: dict[str, int] = getattr(self.generation, "lang_to_id", None) or {}
        self.tasks: dict[str, int] = getattr(self.generation, "task_to_id", None) or {}
        self.start = int(self.config.decoder_start_token_id)
        self.limit = min(length, int(self.config.max_target_positions))
        self.ends = ids_of(self.config.eos_token_id)
        self.special = np.array(sorted(self._special_ids()), dtype=np.int64)
        # What the model wrote for a clip: writing takes longer than the pass that follows,
        # and a document is made ready once to be counted and once to be run.
        self._transcripts: dict[str, tuple[Array, bool]] = {}

    def prepare(self, document: Document) -> Prepared | None:
        """Return the clip and its transcript made ready; None if shorter than two frames."""
        rate = int(self.extractor.sampling_rate)
        samples = samples_of(document, rate)
        clip = samples[: int(self.extractor.n_samples)]
        frames = -(-len(clip) // (2 * int(self.extractor.hop_length)))
        if frames < 2:
            return None
        ready = self.extractor(clip, sampling_rate=rate, return_tensors="np")
        features = np.asarray(ready["input_features"][0], dtype=np.float32)
        key = blake2b(features.data, digest_size=16).hexdigest() + (document.target or "")
        if key not in self._transcripts:
            self._transcripts[key] = self._transcript(document, features)
        ids, cut = self._transcripts[key]
        special = np.isin(ids, self.special)
        return Prepared(
            document.id,
            {"input_features": features, "decoder_input_ids": ids},
            length=frames,
            cost=int(self.config.max_source_positions),
            truncated=cut or len(samples) > len(clip),
            special={DECODER: special},
        )

    def collate(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the clips side by side with their transcripts."""
        features = np.stack([each.inputs["input_features"] for each in prepared])
        rows = [each.inputs["decoder_input_ids"] for each in prepared]
        fill = int(self.config.pad_token_id or 0)
        tokens = pad_rows(rows, fill=fill, device=self.device)
        real = within([len(row) for row in rows], tokens.shape[1], self.device)
        special = pad_rows([each.special[DECODER] for each in prepared], device=self.device)
        inputs = {
            "input_features": self._features(features),
            "decoder_input_ids": tokens,
            "decoder_attention_mask": real.long(),
        }
        counts = tuple(each.length for each in prepared)
        total = int(self.config.max_source_positions)
        encoder = partial(frame_marks, counts, total, self.device)
        decoder = TokenLayout(real, special, tokens)
        documents = tuple(each.id for each in prepared)
        return Batch(inputs, documents, {ENCODER: encoder, DECODER: decoder})

    def _transcript(self, document: Document, features: Array) -> tuple[Array, bool]:
        target = (document.target or "").strip()
        prompt = self._prompt(features)
        if target:
            if self.tokenizer is None:
                raise ConfigError(
                    "expected a tokenizer for the transcripts, got none",
                    hint="put tokenizer.json in the model's folder, or remove the transcripts",
                    slug="tokenizer-missing",
                )
            text = self.tokenizer(f" {target}", add_special_tokens=False)["input_ids"]
        else:
            text = self._generate(features, prompt)
        room = max(0, self.limit - len(prompt))
        ids = np.array([*prompt, *text[:room]], dtype=np.int64)
        return ids, bool(target) and len(text) > room

    def _prompt(self, features: Array) -> list[int]:
        """Return the tokens that ask for a transcript in the language of the clip."""
        known = getattr(self.generation, "is_multilingual", None)
        multilingual = int(self.config.vocab_size) > ENGLISH if known is None else known
        request = self._language(features) + self._task() if multilingual else []
        return [self.start, *request, *self._without_times()]

    def _generate(self, features: Array, prompt: list[int]) -> list[int]:
        settings = deepcopy(self.generation)
        room = min(self.limit, int(self.config.max_target_positions)) - len(prompt)
        settings.max_length = None
        settings.max_new_tokens = max(1, min(GREEDY, room))
        settings.do_sample, settings.num_beams, settings.return_timestamps = False, 1, False
        with _quiet_generation(), torch.no_grad():
            found = self.model.generate(
                self._features(features[None]),
                generation_config=settings,
                decoder_input_ids=torch.tensor([prompt], device=self.device),
            )
        written = [int(each) for each in found[0].tolist()]
        if written[: len(prompt)] == prompt:  # some versions return it too
            written = written[len(prompt) :]
        end = next((n for n, each in enumerate(written) if each in self.ends), len(written))
        return written[: min(end, GREEDY)]

    def _language(self, features: Array) -> list[int]:
        if not self.languages:
            return self._token_id("<|en|>")
        with torch.no_grad():
            found = self.model.detect_language(
                input_features=self._features(features[None]),
                generation_config=self.generation,
                num_segment_frames=features.shape[-1],
            )
        return [int(found[0])]

    def _features(self, features: Array) -> torch.Tensor:
        return torch.from_numpy(features).to(self.device, self.dtype)

    def _task(self) -> list[int]:
        task = self.tasks.get("transcribe")
        return self._token_id("<|transcribe|>") if task is None else [int(task)]

    def _without_times(self) -> list[int]:
        known = getattr(self.generation, "no_timestamps_token_id", None)
        return self._token_id("<|notimestamps|>") if known is None else [int(known)]

    def _token_id(self, token: str) -> list[int]:
        known = {} if self.tokenizer is None else self.tokenizer.get_vocab()
        return [known[token]] if token in known else []

    def _special_ids(self) -> set[int]:
        return {
            self.start,
            *self._without_times(),
            *self._task(),
            *self._token_id("<|en|>"),
            *self.languages.values(),
            *self.tasks.values(),
            *self.ends,
            *(int(each) for each in getattr(self.tokenizer, "all_special_ids", [])),
        }


@contextmanager
def _quiet_generation() -> Generator[None]:
    """Keep transformers from remarks on settings that are its own."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)
