"""A study: one model, one corpus, planned into units, done, and saved."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import IsoscopeError
from isoscope.survey import SECOND_PASS, Survey, kinds_for
from isoscope.survey.select import Selection
from isoscope.survey.variant import variants
from isoscope.verbs.plan import (
    check_truncation,
    chosen_documents,
    chosen_sites,
    frequencies_for,
    pooling_for,
    tasks_for,
    turns_for,
)

if TYPE_CHECKING:
    from isoscope.report import Readings
    from isoscope.store.unit import Unit, Units
    from isoscope.verbs.model import Found


@dataclass
class Study:
    """What is run, in which portions, and where it is kept meanwhile."""

    found: "Found"
    corpus: Any
    feed: Any
    folder: Path
    names: tuple[str, ...]
    given: Mapping[str, Any]
    selection: Selection
    sites: tuple[str, ...]
    units: "Units"
    options: dict[str, Any]
    pooling: Any = None
    bands: Any = None  # frequency band of every token
    halvings: int = 0  # how often memory ran out
    done_rows: int = 0
    told: int = 0  # rows that progress has heard of: it never goes back

    @classmethod
    def planned(
        cls, found: "Found", folder: Path, names: tuple[str, ...], given: Mapping[str, Any]
    ) -> "Study":
        """Choose documents and sites, and cut the work into units."""
        from isoscope.capture.feed import feed_for
        from isoscope.source.corpus import open_corpus
        from isoscope.store.unit import Units

        corpus = open_corpus(
            given["corpus"],
            column=given["column"],
            target=given["target"],
            id=given["id"],
            per=given["per"],
            kind=given["kind"],
            skip_bad=given["skip_bad"],
            length=given["length"],
        )
        feed = feed_for(found.loaded, length=given["length"], prompt=given["prompt"])
        frequencies = frequencies_for(found, given["frequencies"])
        selection = chosen_documents(corpus, feed, given, frequencies)
        pooling = pooling_for(found, given["pooling"])
        sites = chosen_sites(found, given["sites"], pooling is not None)
        check_truncation(sites, given["truncate_dim"])
        turns = turns_for(found, sites, given)
        tasks = tasks_for(
            found,
            corpus,
            selection,
            sites,
            turns,
            feed.mixes_lengths,
            given,
            names,
            frequencies,
        )
        options = {
            "zeta": given["zeta"],
            "as_published": given["as_published"],
            "documents": True,
        }
        return cls(
            found, corpus, feed, folder, names, given, selection, sites, Units.of(tasks),
            options, pooling, frequencies.bands(),
        )  # fmt: skip

    def done(self) -> Path:
        """Do what is not done yet; return the file with the state of all sites."""
        from isoscope.engine import here
        from isoscope.store.stream import laid_over

        kinds = self._kinds
        first = tuple(kind for kind in kinds if kind not in SECOND_PASS)
        second = tuple(kind for kind in kinds if kind in SECOND_PASS)
        work = self.folder / "units"
        frontier = here(self.units, lambda unit: self._unit(unit, first, second), work)
        state = self.folder / "total.part"
        state.unlink(missing_ok=True)
        frontier.total(state)
        if second and self.given["all"]:
            again = self._again(state, second)
            whole = self.folder / "whole.part"
            whole.unlink(missing_ok=True)
            laid_over(state, again, whole)
            whole.replace(state)
        return state

    def _again(self, state: Path, second: tuple[Any, ...]) -> Path:
        """Run the corpus once more, for measures that need to know the mean first."""
        from isoscope.engine import here
        from isoscope.store.stream import StateReader
        from isoscope.store.unit import Units, address

        reader = StateReader(state)
        mark = address({"/".join(place): reader.digest(place) for place in reader.places})
        tasks = [
            {**unit.task, "pass": 2, "first": mark}
            for unit in self.units.units
            if "batches" in unit.task
        ]
        units = Units.of(tasks)
        frontier = here(
            units, lambda unit: self._second(unit, reader, second), self.folder / "again"
        )
        total = self.folder / "again.part"
        total.unlink(missing_ok=True)
        frontier.total(total)
        return total

    def _unit(self, unit: "Unit", first: tuple[Any, ...], second: tuple[Any, ...]) -> Survey:
        if "weights" in unit.task:
            return self._weights(unit, first, second if self.given["all"] else ())

        def take(survey: Survey, site: str, row_class: str, block: Any) -> None:
            survey.update((site, row_class), first, block)

        return self._heard(unit, Survey, take)

    def _second(self, unit: "Unit", reader: Any, second: tuple[Any, ...]) -> Survey:
        def fresh() -> Survey:
            survey = Survey()
            for site in unit.task["sites"]:
                places = [place for place in reader.places if place[0] == site]
                held = reader.survey(places).held
                for _, alike, here in variants(held):
                    place = (site, alike[0])
                    survey.held[place] = Survey({place: here}).second_kinds(place, second)
            return survey

        def take(survey: Survey, site: str, variant: str, block: Any) -> None:
            for part in survey.held.get((site, variant), {}).values():
                part.update(block)

        return self._heard(unit, fresh, take, whole_variants=True)

    def _heard(
        self, unit: "Unit", fresh: Any, take: Any, *, whole_variants: bool = False
    ) -> Survey:
        """Run a unit; where memory ends, run it again in smaller batches."""
        from isoscope.capture.runner import halved, is_out_of_memory
        from isoscope.capture.threads import threads

        batches = unit.task["batches"]
        while True:
            self.done_rows = self._before(unit)
            try:
                with threads(unit.task["threads"]):
                    parts = list(halved(batches, self.halvings))
                    return self._run(unit, parts, fresh(), take, whole_variants)
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                if max(len(part) for part in halved(batches, self.halvings)) == 1:
                    raise _out_of_memory(
                        self.found.loaded.name, self.given["length"]
                    ) from error
                self.halvings += 1
                self._say(f"memory ran out: batches are now cut in {2**self.halvings}")

    def _run(
        self, unit: "Unit", batches: Any, survey: Survey, take: Any, whole_variants: bool
    ) -> Survey:
        from isoscope.accumulate import Groups
        from isoscope.accumulate.hashing import GROUPS
        from isoscope.capture.listener import Listener
        from isoscope.capture.runner import Runner

        folded = len(self.selection.items) > GROUPS

        def meet(site: str, variant: str, classes: Any) -> None:
            width = classes[0].units.shape[1]
            survey.meet((site, variant), classes, width=width, folded=folded)

        listener = Listener(
            lambda site, row_class, block: take(survey, site, row_class, block),
            survey.spoil,
            None if whole_variants else meet,
            whole_variants=whole_variants,
            times=self.given["sinks"],
            seed=self.given["seed"],
            folded=folded,
            sketched=Groups in self._kinds,
            bands=self.bands,
            decode=_decoder(self.found.loaded.tokenizer),
        )
        runner = Runner(
            self.found.loaded.body,
            self.found.sites,
            self.feed,
            pooling=self.pooling,
            truncate=self.given["truncate_dim"],
        )
        # Documents are loaded batch by batch: a unit of images may be larger than memory.
        loaded = ([self.corpus.document(ordinal) for ordinal in batch] for batch in batches)
        runner.run(unit.task["sites"], loaded, listener, self._tick)
        return survey

    def _weights(self, unit: "Unit", first: tuple[Any, ...], second: tuple[Any, ...]) -> Survey:
        """Measure the rows of the embedding matrices."""
        from isoscope.survey import block_rows, run
        from isoscope.types import Chunk

        whole = Survey()
        for site in unit.task["weights"]:
            matrix = self.found.sites.weights[site].detach().float().cpu().numpy()
            bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
            if len(bad):
                whole.spoil(site, f"row {bad[0]} of the matrix")
                continue
            step = block_rows(matrix.shape[1])
            chunks = [
                Chunk(matrix[start : start + step], site, start)
                for start in range(0, len(matrix), step)
            ]
            place = (site, "all")
            survey, _ = run(chunks, place, first, seed=self.given["seed"])
            if second:
                start = Survey({place: survey.second_kinds(place, second)})
                again, _ = run(chunks, place, second, seed=self.given["seed"], start=start)
                survey.held[place].update(again.held[place])
            whole.merge(survey)
        return whole

    def saved(
        self,
        output: str | os.PathLike[str],
        state: Path,
        readings: "Readings",
        config: dict[str, Any],
        overwrite: bool,
    ) -> None:
        """Write the run folder whole."""
        from isoscope.store import new_origin, save

        identity = dict(self.found.loaded.identity)
        settings = {
            "measures": list(self.names),
            **self.options,
            "length": self.given["length"],
            "sinks": self.given["sinks"],
            "sites": list(self.sites),
            "prompt": self.given["prompt"],
            "truncate_dim": self.given["truncate_dim"],
            "pooling": getattr(self.pooling, "mode", None),
        }
        sources = [
            {
                "name": self.corpus.name,
                "fingerprint": self.corpus.fingerprint,
                "rows": self.selection.rows,
                "dtype": str(identity["dtype"]),
                "width": max(self.found.sites.widths.values(), default=0),
                "file": Path(self.corpus.place).name if self.corpus.place else "",
                "kind": self.corpus.kind,
                "documents": len(self.selection.items),
                "of": len(self.corpus),
                "truncated": self.selection.truncated,
                "warnings": self.remarks,
                "units": self.units.id,
            }
        ]
        origin = new_origin(
            sources=sources,
            settings=settings,
            seed=self.given["seed"],
            kind="survey",
            model=identity,
        )
        save(output, state, readings, origin, config, overwrite, resume=True)

    @property
    def remarks(self) -> list[str]:
        """What should be said of the run as a whole."""
        return [*self.corpus.warnings, *self.selection.warnings()]

    def _before(self, unit: "Unit") -> int:
        """Return the rows of all units before this one, done now or by a run that ended."""
        rows = {item.ordinal: item.length for item in self.selection.items}
        first = [each.task["batches"] for each in self.units.units if "batches" in each.task]
        before = first[: unit.number]
        if unit.task.get("pass") == 2:
            before = [*first, *before]
        return sum(rows[each] for batches in before for batch in batches for each in batch)

    @property
    def _all_rows(self) -> int:
        """Rows that go through the model: the corpus, as often as it is run."""
        turns = len({tuple(each.task.get("sites", ())) for each in self.units.units} - {()})
        twice = self.given["all"] and any(kind in SECOND_PASS for kind in self._kinds)
        return self.selection.rows * turns * (2 if twice else 1)

    @property
    def _kinds(self) -> tuple[Any, ...]:
        return kinds_for(self.names, causes=True)

    def _tick(self, rows: int) -> None:
        self.done_rows += rows
        self.told = max(self.told, self.done_rows)
        if self.given["progress"] is not None:
            self.given["progress"](self.told, self._all_rows)

    def _say(self, text: str) -> None:
        if self.given["say"] is not None:
            self.given["say"](text)


def _decoder(tokenizer: Any) -> Callable[[list[int]], str] | None:
    """Return what turns tokens into words, to name sinks by."""
    if tokenizer is None:
        return None

    def decode(tokens: list[int]) -> str:
        return str(tokenizer.decode(tokens))

    return decode


def _out_of_memory(model: str, length: int) -> IsoscopeError:
    return IsoscopeError(
        f"memory ran out with a single document of at most {length} tokens in {model}",
        hint="lower --length, do the sites in more --turns, or use --dtype bfloat16; "
        "the same command goes on from the last whole unit",
        slug="out-of-memory",
    )
