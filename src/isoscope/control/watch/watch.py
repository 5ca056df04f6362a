"""Watch: geometry every few hundred steps, in the tracker people have, with alarms.

The model is listened to in that one step only: hooks are attached before it and are gone
after it. Reading does not change training: held-out texts run in evaluation mode, without
gradients and without drawing a random number.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from isoscope.accumulate.survey import Survey
from isoscope.control.watch.alert import LOSS, PREFIX, Alert, AlertRule, usual_rules
from isoscope.control.watch.logger import Log
from isoscope.control.watch.observer import (
    DEAD,
    Observer,
    ProbeBatch,
    check_probes,
    probe_batches,
)
from isoscope.control.watch.tangents import Tangents
from isoscope.errors import ConfigError

if TYPE_CHECKING:
    from isoscope.capture.model.tokenizer import Tokenizer

MEASURES = ("mean-cosine", "effective-rank", "isoscore-debiased", DEAD)
ACTIONS = ("log", "stop")
LOST = f"{PREFIX}/lost"
PROXY = "proxy:"  # in front of the directions of a site, among the tensors of a state
OnAlert = str | Callable[[Alert], object]  # "log", "stop", or a callback; True stops


class Watch:
    """Follows the geometry of a model while it trains.

    Every `every` steps the chosen sites are read, on held-out texts (`probes`) and on the
    training batch, and logged as `anisotropy/<measure>/<site>`; those of the batch end in
    `.batch`. `attach(trainer, Watch(texts))` puts it into a trainer of transformers,
    `WatchCallback` into Lightning; in a loop of your own use `begin` and `end`.

    Sites are families or names, as in a survey, `pooled` among them; of modules that are no
    transformer, name the `modules` instead. Measures are those of the package that need one
    pass, and `dead-dimensions`. `pooling` says how tokens are pooled where the model does
    not. `chance` is the N of ln N: classes, or texts in a batch. `fine_tuning` says that the
    model was trained before: then less is a collapse. `tangents=Tangents()` also reads the
    gradients of those steps, against the directions in which activations were large before.
    """

    def __init__(
        self,
        probes: Sequence[object] | None = None,
        *,
        every: int = 100,
        sites: Sequence[str] = ("resid",),
        measures: Sequence[str] = MEASURES,
        rules: Sequence[AlertRule] | None = None,
        chance: int | None = None,
        fine_tuning: bool = False,
        on_alert: OnAlert = "log",
        batch: bool = True,
        tokenizer: "Tokenizer | None" = None,
        length: int = 64,
        tokens: int = 1024,
        modules: Sequence[str] | None = None,
        pooling: str | None = None,
        log: Log | None = None,
        join: bool = True,
        tangents: Tangents | None = None,
    ) -> None:
        nothing = probes is None and not batch and tangents is None
        if every < 1 or nothing:
            raise ConfigError(
                f"expected something to watch every step or less often, got every={every} and "
                + ("nothing to watch" if nothing else "held-out texts"),
                hint="give probes, or leave batch=True; every=100 is usual",
                slug="watch-settings",
            )
        if isinstance(on_alert, str) and on_alert not in ACTIONS:
            raise ConfigError(
                f"expected log, stop or a function as on_alert, got {on_alert!r}",
                hint="a function is called with each alert, and may return True to stop",
                slug="watch-settings",
            )
        check_probes(probes)
        self.probes, self.every, self.batch, self.on_alert = probes, every, batch, on_alert
        self.rules = (
            usual_rules(chance, fine_tuning=fine_tuning) if rules is None else tuple(rules)
        )
        self.tokenizer, self.length, self.tokens, self.log = tokenizer, length, tokens, log
        self.observer = Observer(
            measures, sites=sites, modules=modules, pooling=pooling, join=join, warn=self._warn
        )
        self.tangents = tangents
        self.history: dict[str, list[tuple[int, float]]] = {}
        self.alerts: list[Alert] = []
        self._probes: list[ProbeBatch] | None = None
        self._losses = 0  # at the end of the history, those of this process alone
        self._warned: set[object] = set()
        self._open = ExitStack()
        self._of_batch: Survey | None = None  # summed in the step that is due

    def __repr__(self) -> str:
        observer = self.observer
        where = observer.families if observer.modules is None else observer.modules
        held_out = "no probes" if self.probes is None else f"{len(self.probes)} probes"
        read = {step for name, each in self.history.items() if name != LOSS for step, _ in each}
        done = f"{len(read)} readings" + (f", the last at step {max(read)}" if read else "")
        return (
            f"Watch({held_out}{' and the batch' if self.batch else ''}, every={self.every}, "
            f"sites={','.join(where)}, measures={','.join(observer.measures)}; {done}, "
            f"{len(self.alerts)} alerts)"
        )

    def place(self, model: nn.Module) -> None:
        """Find the sites in a model, or raise where one is not there."""
        self.observer.place(model)
        if self.tangents is not None:
            self.tangents.place(model)

    def due(self, step: int) -> bool:
        """Whether the geometry is read after this step; the first reading is before any."""
        return step % self.every == 0

    def begin(self, model: nn.Module, step: int) -> None:
        """Listen to the step with this number (the first is 1), if it is one to be read."""
        self.close()
        if self.tangents is not None and self.due(step):
            self._open.enter_context(self.tangents.listening(model, self.observer.world))
        if self.batch and self.due(step):
            # Kept although nothing may come: a process without a batch takes part in the sums.
            self._of_batch = Survey()
            name = f"batch:{self.observer.world.rank}"
            self._open.enter_context(
                self.observer.listening(
                    model, self._of_batch, name, end=lambda *_: self.close()
                )
            )

    def end(self, model: nn.Module, step: int, loss: Tensor | float | None = None) -> bool:
        """Read the geometry after a step, if it is due; return whether to stop training."""
        self.close()
        if loss is not None:
            self.saw_loss(step, float(loss))
        return self.read(model, step) if self.due(step) else False

    def saw_loss(self, step: int, loss: float) -> None:
        """Note a loss, without penalties, for the rules that look at it."""
        self.history.setdefault(LOSS, []).append((step, loss))
        self._losses += 1

    def close(self) -> None:
        """Remove the hooks."""
        self._open.close()

    def read(self, model: nn.Module, step: int) -> bool:
        """Read held-out texts and what the batch left, log the numbers, and apply the rules."""
        numbers: dict[str, float] = {}
        self._average_losses()
        if self.probes is not None:
            if self._probes is None:
                self._probes = probe_batches(
                    self.probes,
                    self.observer.place(model).body,
                    self.tokenizer,
                    length=self.length,
                    tokens=self.tokens,
                    world=self.observer.world,
                )
            numbers |= self._numbers(self.observer.run(model, self._probes), "")
        if self._of_batch is not None:
            survey, self._of_batch = self._of_batch, None
            numbers |= self._numbers(survey, ".batch")
        if self.tangents is not None:
            numbers |= self._tangent_numbers(self.tangents, step)
        for name, value in numbers.items():
            if not name.startswith(LOST):
                self.history.setdefault(name, []).append((step, value))
        alerts = self._new_alerts()
        logged = numbers | {f"{PREFIX}/alert/{each.rule}": 1.0 for each in alerts}
        if self.log is not None and logged:
            self.log(logged, step)
        return self._act_on(alerts)

    def _numbers(self, survey: Survey, ending: str) -> dict[str, float]:
        """Return numbers by the names they are logged under."""
        found, lost = self.observer.read(survey)
        for site in lost:
            self._warn(f"{site}{ending} is NaN or infinite, and cannot be watched")
        numbers = {f"{PREFIX}/{name}/{site}{ending}": v for (name, site), v in found.items()}
        return numbers | {f"{LOST}/{site}{ending}": 1.0 for site in lost}

    def _tangent_numbers(self, tangents: Tangents, step: int) -> dict[str, float]:
        """Return what the gradients of the step are, by the names they are logged under."""
        found, lost = tangents.read(self.observer.world)
        for why in dict.fromkeys(lost.values()):
            sites = ", ".join(site for site, reason in lost.items() if reason == why)
            self._warn(f"{sites} cannot be watched at step {step}: {why}", once=(sites, why))
        numbers = {f"{PREFIX}/{name}/{site}": v for (name, site), v in found.items()}
        return numbers | {f"{LOST}/{site}": 1.0 for site in lost}

    def _average_losses(self) -> None:
        """Replace new losses by their mean over the processes, or each would judge alone."""
        new, self._losses = self._losses, 0
        series = self.history.get(LOSS, [])
        start = len(series) - new
        everywhere = self.observer.world.gather_objects([value for _, value in series[start:]])
        if len(everywhere) == 1 or {len(each) for each in everywhere} != {new}:
            return
        for at, values in enumerate(zip(*everywhere, strict=True), start):
            series[at] = (series[at][0], sum(values) / len(values))

    def _new_alerts(self) -> list[Alert]:
        """Return alerts that no rule has raised of the same series before."""
        known = {(each.rule, each.name) for each in self.alerts}
        raised = [alert for rule in self.rules for alert in rule(self.history)]
        fresh = [each for each in raised if (each.rule, each.name) not in known]
        self.alerts += fresh
        return fresh

    def _act_on(self, alerts: Sequence[Alert]) -> bool:
        """Warn or call back for each alert, and return whether to stop training."""
        stop = False
        for alert in alerts:
            if callable(self.on_alert):
                stop = self.on_alert(alert) is True or stop
            else:
                warnings.warn(str(alert), stacklevel=4)
                stop = stop or self.on_alert == "stop"
        return stop

    def state_dict(self) -> dict[str, Tensor]:
        """Return the history, so that a run that is resumed is judged as one."""
        kept = {
            name: torch.tensor(series, dtype=torch.float64).reshape(-1, 2)
            for name, series in self.history.items()
        }
        alerts = "\n".join(
            f"{a.rule}\t{a.step}\t{a.name}\t{a.value!r}\t{a.reference!r}" for a in self.alerts
        )
        proxies = {} if self.tangents is None else self.tangents.state_dict()
        return (
            kept
            | {f"{PROXY}{site}": basis for site, basis in proxies.items()}
            | {"alerts": torch.tensor(list(alerts.encode()), dtype=torch.uint8)}
        )

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over a history."""
        proxies = {n.removeprefix(PROXY): t for n, t in state.items() if n.startswith(PROXY)}
        if self.tangents is not None:
            self.tangents.load_state_dict(proxies)
        series = {
            name: tensor
            for name, tensor in state.items()
            if name != "alerts" and not name.startswith(PROXY)
        }
        self.history = {
            name: [(int(step), float(value)) for step, value in tensor.tolist()]
            for name, tensor in series.items()
        }
        parts = [
            line.split("\t") for line in bytes(state["alerts"].tolist()).decode().splitlines()
        ]
        self.alerts = [Alert(r, int(s), n, float(v), float(w)) for r, s, n, v, w in parts]
        self._losses = 0

    def _warn(self, message: str, once: object = None) -> None:
        """Warn of something once."""
        if (once or message) not in self._warned:
            self._warned.add(once or message)
            warnings.warn(message, stacklevel=4)
