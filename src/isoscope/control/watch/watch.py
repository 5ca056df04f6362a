"""Watch: geometry every few hundred steps, in the tracker people have, with alarms.

The model is listened to in that one step only: hooks are attached before it and are gone
after it. Reading does not change training: held-out texts run in evaluation mode, without
gradients and without drawing a random number.
"""

import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.control.listening import EndPass, Pass, SiteListener, evaluating
from isoscope.control.watch.alert import LOSS, PREFIX, Alert, Rule, usual_rules
from isoscope.control.watch.glance import GLANCES, Glance
from isoscope.control.watch.held_out import checked_probes, probe_batches
from isoscope.control.world import World
from isoscope.errors import ConfigError

MEASURES = ("mean-cosine", "effective-rank", "isoscore-debiased", "dead-dimensions")
ACTIONS = ("log", "stop")
LOST = f"{PREFIX}/lost"
Log = Callable[[dict[str, float], int], None]  # numbers by name, and the step
OnAlert = str | Callable[[Alert], Any]  # "log", "stop", or what is called; True stops


class Watch:
    """Follows the geometry of a model while it trains.

    Every `every` steps the chosen sites are read, on held-out texts (`probes`) and on the
    training batch, and logged as `anisotropy/<measure>/<site>`; those of the batch end in
    `.batch`. `attach(trainer, Watch(texts))` puts it into a trainer of transformers,
    `WatchCallback` into Lightning; in a loop of your own use `begin` and `end`.

    Sites are families or names, as in a survey; of modules that are no transformer, name
    the `modules` instead. `chance` is the N of ln N: classes, or texts in a batch.
    `fine_tuning` says that the model was trained before: then less is a collapse.
    """

    def __init__(
        self,
        probes: Sequence[Any] | None = None,
        *,
        every: int = 100,
        sites: Sequence[str] = ("resid",),
        measures: Sequence[str] = MEASURES,
        rules: Sequence[Rule] | None = None,
        chance: int | None = None,
        fine_tuning: bool = False,
        on_alert: OnAlert = "log",
        batch: bool = True,
        tokenizer: Any = None,
        length: int = 64,
        tokens: int = 1024,
        modules: Sequence[str] | None = None,
        log: Log | None = None,
        join: bool = True,
    ) -> None:
        if every < 1 or (probes is None and not batch):
            raise ConfigError(
                f"expected something to watch every step or less often, got every={every} and "
                + ("nothing to watch" if probes is None and not batch else "held-out texts"),
                hint="give probes, or leave batch=True; every=100 is usual",
                slug="watch-settings",
            )
        if isinstance(on_alert, str) and on_alert not in ACTIONS:
            raise ConfigError(
                f"expected log, stop or a function as on_alert, got {on_alert!r}",
                hint="a function is called with each alert, and may return True to stop",
                slug="watch-settings",
            )
        for name in measures:
            _ = GLANCES[name]
        self.probes = checked_probes(probes)
        self.every, self.families = every, tuple(sites)
        self.measures, self.on_alert, self.batch = tuple(measures), on_alert, batch
        self.rules = (
            usual_rules(chance, fine_tuning=fine_tuning) if rules is None else tuple(rules)
        )
        self.tokenizer, self.length, self.tokens = tokenizer, length, tokens
        self.modules, self.log, self.join = modules, log, join
        self.history: dict[str, list[tuple[int, float]]] = {}
        self.alerts: list[Alert] = []
        self._listener: SiteListener | None = None
        self._batches: list[dict[str, Tensor]] | None = None
        self._losses = 0  # at the end of the history, those of this process alone
        self._warned: set[str] = set()
        self._open = ExitStack()
        self._heard: dict[str, Glance] | None = None

    def due(self, step: int) -> bool:
        """Whether the geometry is read after this step; the first reading is before any."""
        return step % self.every == 0

    def begin(self, model: nn.Module, step: int) -> None:
        """Listen to the step with this number (the first is 1), if it is one to be read."""
        self.close()
        if self.batch and self.due(step):
            # Noted whatever is heard: a process without a batch has to take part in the sums.
            self._heard = {}
            listening = self._listening(model, self._heard, end=lambda *_: self.close())
            self._open.enter_context(listening)

    def end(self, model: nn.Module, step: int, loss: Any = None) -> bool:
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
        """Let go of the model."""
        self._open.close()

    def read(self, model: nn.Module, step: int) -> bool:
        """Read held-out texts, log them with what the batch said, and judge by the rules."""
        found: dict[str, float] = {}
        self._average_losses(_device(model))
        if self.probes is not None:
            found |= self._numbers(model, self._probed(model), "")
        if self._heard is not None:
            heard, self._heard = self._heard, None
            found |= self._numbers(model, heard, ".batch")
        for name, value in found.items():
            if not name.startswith(LOST):
                self.history.setdefault(name, []).append((step, value))
        alerts = self._judged()
        logged = found | {f"{PREFIX}/alert/{each.rule}": 1.0 for each in alerts}
        if self.log is not None and logged:
            self.log(logged, step)
        return self._acted(alerts)

    def _average_losses(self, device: torch.device) -> None:
        """Give new losses their mean over the processes, or each would judge by its own."""
        world, new = World.current(self.join), self._losses
        self._losses = 0
        counts = world.gather([new], device)
        if world.size == 1 or not new or any(each != [new] for each in counts):
            return
        series = self.history[LOSS][-new:]
        own = torch.tensor([value for _, value in series], device=device, dtype=torch.float64)
        means = (world.sum(own) / world.size).tolist()
        self.history[LOSS][-new:] = [
            (step, mean) for (step, _), mean in zip(series, means, strict=True)
        ]

    def _judged(self) -> list[Alert]:
        """Return what rules see that they have not said of the same series before."""
        known = {(each.rule, each.name) for each in self.alerts}
        seen = [alert for rule in self.rules for alert in rule(self.history)]
        fresh = [each for each in seen if (each.rule, each.name) not in known]
        self.alerts += fresh
        return fresh

    def _acted(self, alerts: Sequence[Alert]) -> bool:
        stop = False
        for alert in alerts:
            if callable(self.on_alert):
                stop = self.on_alert(alert) is True or stop
            else:
                warnings.warn(str(alert), stacklevel=4)
                stop = stop or self.on_alert == "stop"
        return stop

    def _numbers(
        self, model: nn.Module, glances: Mapping[str, Glance], ending: str
    ) -> dict[str, float]:
        world = World.current(self.join)
        listener = self._placed(model)
        device = _device(model)
        found: dict[str, float] = {}
        for site in listener.names:
            own = listener.sites.widths[site]
            width = max(max(each) for each in world.gather([own], device))
            like = torch.zeros(0, width, device=device)
            whole = glances.get(site, Glance()).whole(like, world)
            if whole.lost:
                self._warn_once(f"{site}{ending} is NaN or infinite, and cannot be watched")
                found[f"{LOST}/{site}{ending}"] = 1.0
                continue
            for name in self.measures:
                value = GLANCES[name](whole)
                if value is not None:
                    found[f"{PREFIX}/{name}/{site}{ending}"] = value
        return found

    def _probed(self, model: nn.Module) -> dict[str, Glance]:
        world = World.current(self.join)
        if self._batches is None:
            assert self.probes is not None
            self._batches = probe_batches(
                self.probes, self.tokenizer, length=self.length, tokens=self.tokens,
                rank=world.rank, size=world.size,
            )  # fmt: skip
        device = _device(model)
        heard: dict[str, Glance] = {}
        with evaluating(model), torch.no_grad():
            body = self._placed(model).body
            for number, batch in enumerate(self._batches):
                with self._listening(model, heard, start=number):
                    body(**{name: value.to(device) for name, value in batch.items()})
        return heard

    def _placed(self, model: nn.Module) -> SiteListener:
        """Return what listens to the sites of a model, found by one small pass at first."""
        if self._listener is None or not self._listener.fits(model):
            self._listener = SiteListener(model, self.families, self.modules)
        return self._listener

    @contextmanager
    def _listening(
        self,
        model: nn.Module,
        into: dict[str, Glance],
        start: int = 0,
        end: EndPass | None = None,
    ) -> Generator[None]:
        """Sum the sites in the next pass of the model, and in no other."""
        listener = self._placed(model)
        seen: set[str] = set()

        def hear(current: Pass | None, site: str, tensor: Tensor) -> None:
            if site in seen or tensor.ndim not in (2, 3):
                return
            if current is None and self.modules is None:  # its padding is not known
                self._warn_once("the batch runs blocks of the model and not the model, so it "
                                "cannot be watched; name modules= instead")  # fmt: skip
                return
            seen.add(site)
            rows, sequences = _rows(tensor, None if current is None else current.mask)
            listener.sites.widths[site] = rows.shape[1]
            into.setdefault(site, Glance()).add(rows, sequences + start)

        with listener.listening(hear, end=end):
            yield

    def state_dict(self) -> dict[str, Tensor]:
        """Return the history, so that a run that is resumed is judged as one."""
        kept = {
            name: torch.tensor(series, dtype=torch.float64).reshape(-1, 2)
            for name, series in self.history.items()
        }
        said = "\n".join(
            f"{a.rule}\t{a.step}\t{a.name}\t{a.value!r}\t{a.reference!r}" for a in self.alerts
        )
        return kept | {"alerts": torch.tensor(list(said.encode()), dtype=torch.uint8)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over a history."""
        series = {name: tensor for name, tensor in state.items() if name != "alerts"}
        self.history = {
            name: [(int(step), float(value)) for step, value in tensor.tolist()]
            for name, tensor in series.items()
        }
        lines = bytes(state["alerts"].tolist()).decode().splitlines()
        parts = [line.split("\t") for line in lines]
        self.alerts = [Alert(r, int(s), n, float(v), float(w)) for r, s, n, v, w in parts]
        self._losses = 0

    def _warn_once(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(message, stacklevel=4)


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def _rows(tensor: Tensor, mask: Any) -> tuple[Tensor, Tensor]:
    """Return the real rows of what a site says, and the number of the sequence of each."""
    if tensor.ndim == 2:
        return tensor, torch.arange(len(tensor), device=tensor.device)
    real = torch.ones(tensor.shape[:2], dtype=torch.bool, device=tensor.device)
    if isinstance(mask, Tensor) and mask.shape == tensor.shape[:2]:
        real = mask.to(tensor.device).bool()
    numbers = torch.arange(len(tensor), device=tensor.device)[:, None].expand(real.shape)
    return tensor[real], numbers[real]
