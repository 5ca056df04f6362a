"""Forward passes of a model in training, and listening to its sites in them.

Penalties and watches listen in one way. The sites are found by one small pass, hooks are on
them while somebody listens, and a wrapper of the model's `forward` says where a pass begins
and ends and which tokens are padding. A wrapper, because hooks on the whole model are run by
calling it, and sentence-transformers calls `forward`, which runs none.
"""

import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import torch
from torch import Tensor, nn

from isoscope.capture.feed import sample_inputs
from isoscope.capture.model.load import Loaded
from isoscope.capture.sites import Sites
from isoscope.capture.stacks import candidates
from isoscope.capture.tap import Tap
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError
from isoscope.registry import unknown
from isoscope.site import Site

if TYPE_CHECKING:
    from isoscope.capture.model.tokenizer import Tokenizer

PUBLISHED = "published"  # the layers of I-STAR: the last one is after the final norm, if any
P = ParamSpec("P")
R = TypeVar("R")
Arguments = tuple[object, ...]
Keywords = dict[str, object]


def outside_graph(function: Callable[P, R]) -> Callable[P, R]:
    """Leave a function out of compiled graphs: which tokens are real is known only later."""
    return cast(Callable[P, R], torch.compiler.disable(function))


@dataclass(frozen=True)
class Pass:
    """One forward pass of a model."""

    number: int  # from 0, since listening began
    mask: Tensor | None  # (batch, time), 1 for every real token
    trains: bool  # in training mode, with gradients, and not repeated by checkpointing
    tokens: Tensor | None = None  # (batch, time) ids, where the model takes them


Hear = Callable[[Pass | None, str, Tensor], None]  # None: a block that runs outside a pass
BeginPass = Callable[[Pass], None]
EndPass = Callable[[Pass, bool], None]  # and whether it ended without an exception


class SiteListener:
    """Listens to some sites of a model, pass by pass.

    The model is one of transformers, wrapped or not; of any other, name the `modules`, whose
    outputs then are the sites.
    """

    def __init__(
        self,
        model: nn.Module,
        sites: str | Sequence[str],
        modules: Sequence[str] | None = None,
    ) -> None:
        refuse_copies(model)
        self.named = modules is not None
        if modules is not None:
            self.body, self.names = model, tuple(modules)
            self.sites = module_sites(model, modules)
        else:
            self.body = find_transformer(model)
            self.sites = find_sites(self.body)
            self.names = select_sites(self.sites, sites)

    def fits(self, model: nn.Module) -> bool:
        """Whether this is the model the sites were found in."""
        refuse_copies(model)
        return self.body is (model if self.named else find_transformer(model))

    @contextmanager
    def listening(
        self,
        hear: Hear,
        *,
        begin: BeginPass | None = None,
        end: EndPass | None = None,
        detach: bool = True,
    ) -> Generator[None]:
        """Call `hear` with every site of every pass until the block ends, `end` after a pass.

        Tensors are the model's own: (batch, time, d), or as a named module gives them.
        """
        current: Pass | None = None
        count = 0

        def run_pass(
            forward: Callable[..., object], *arguments: object, **keywords: object
        ) -> object:
            nonlocal current, count
            calls.restart()
            mask, tokens = (
                token_argument(self.body, arguments, keywords, name)
                for name in ("attention_mask", "input_ids")
            )
            this = current = Pass(count, mask, trains(self.body), tokens)
            count += 1
            complete = False
            if begin is not None:
                begin(this)
            try:
                output = forward(*arguments, **keywords)
                complete = True
                return output
            finally:
                current = None
                if end is not None:
                    end(this, complete)

        def hear_site(site: str, tensor: Tensor) -> None:
            if not recomputing():
                hear(current, site, tensor)

        with (
            self.sites.listening(self.names, hear_site, detach=detach) as calls,
            ExitStack() as stack,
        ):
            stack.callback(wrap_method(self.body, "forward", run_pass))
            yield


class MethodWrapper:
    """What takes the place of a method of one object; those who need it share it."""

    def __init__(self, owner: object, name: str) -> None:
        self.owner, self.name = owner, name
        self.own = vars(owner).get(name)  # of this one object, as accelerate sets it
        self.users: list[Callable[..., object]] = []
        original: Callable[..., object] = getattr(owner, name)

        @wraps(original)
        def call(*arguments: object, **keywords: object) -> object:
            inner = original
            for around in tuple(self.users):
                inner = partial(around, inner)
            return inner(*arguments, **keywords)

        vars(call)["wrapper"] = self
        vars(owner)[name] = call

    def remove(self, around: Callable[..., object]) -> None:
        """Remove one user, and with the last one the wrapper."""
        self.users.remove(around)
        if not self.users:
            del vars(self.owner)[self.name]
            if self.own is not None:
                vars(self.owner)[self.name] = self.own


def wrap_method(owner: object, name: str, around: Callable[..., object]) -> Callable[[], None]:
    """Call `around(method, *arguments, **keywords)` in place of a method of one object.

    Return what undoes it. Several wrappings of one method may be undone in any order, also
    within a call.
    """
    there = getattr(vars(owner).get(name), "wrapper", None)
    wrapper = there if isinstance(there, MethodWrapper) else MethodWrapper(owner, name)
    wrapper.users.append(around)
    return partial(wrapper.remove, around)


def as_loaded(body: nn.Module, tokenizer: "Tokenizer | None" = None) -> Loaded:
    """Return a model in training as a feed takes it."""
    from isoscope.capture.model.network import takes  # loads transformers

    return Loaded(body, type(body).__name__, takes(body), tokenizer, None, {}, None, body)


def find_sites(body: nn.Module) -> Sites:
    """Return the sites of a model of transformers, found by one small pass."""
    inputs = sample_inputs(as_loaded(body))
    with evaluating(body), torch.no_grad():
        return Sites.discover(body, body, lambda: body(**inputs))


def module_sites(model: nn.Module, modules: Sequence[str]) -> Sites:
    """Return the outputs of named modules as sites; every call of a module counts."""
    known = dict(model.named_modules())
    for name in modules:
        if name not in known:
            raise unknown("module", name, [each for each in known if each])
    return Sites(
        model, dict.fromkeys(modules, 1), {name: Tap(name, name, call=None) for name in modules}
    )


def select_sites(sites: Sites, selectors: str | Sequence[str]) -> tuple[str, ...]:
    """Return the sites that selectors name: "resid", "resid.3", "norm.out", or "published".

    "published" is what I-STAR takes: the stream after every block, the last one after the
    final norm where the model has one, as in `hidden_states[1:]` of language models.
    """
    names: list[str] = []
    for selector in [selectors] if isinstance(selectors, str) else selectors:
        chosen = list(sites.select(["resid" if selector == PUBLISHED else selector]))
        if selector == PUBLISHED:
            final = str(Site("norm", part="out", stack=Site.parse(chosen[-1]).stack))
            chosen[-1:] = [final] if final in sites.widths else chosen[-1:]
        names += chosen
    chosen = [name for name in dict.fromkeys(names) if not Site.parse(name).is_matrix]
    if not chosen:
        raise ConfigError(
            f"expected sites that a batch runs through, got {selectors!r}",
            hint="sites='resid' is the stream after every block; a matrix of weights has no "
            "rows in a batch",
            slug="penalty-sites",
        )
    return tuple(chosen)


def find_transformer(model: nn.Module) -> nn.Module:
    """Return the part of a model that runs its blocks, however it is wrapped."""
    for module in model.modules():
        if _is_pretrained(module):
            return _innermost(getattr(module, str(module.base_model_prefix), module))
    raise ConfigError(
        f"expected a model of transformers in {type(model).__name__}, got none",
        hint="name the modules whose outputs are penalised: modules=['layers.0', 'layers.1']",
        slug="no-transformer",
    )


def _is_pretrained(module: nn.Module) -> bool:
    return hasattr(module, "base_model_prefix") and hasattr(module, "config")


def _innermost(body: nn.Module) -> nn.Module:
    """Return what runs the blocks: a head may bypass the body, as OPT's calls its decoder."""
    inner = {name: each for name, each in body.named_children() if _is_pretrained(each)}
    if {"encoder", "decoder"} <= set(inner):
        raise ConfigError(
            f"expected a model with one stack of layers, got the encoder and the decoder of "
            f"{type(body).__name__}",
            hint="choose one in a loop or compute_loss of your own: "
            "penalised(model.get_encoder(), penalty), watch.begin(model.get_encoder(), step)",
            slug="two-stacks",
        )
    if len(inner) != 1:
        return body
    ((name, only),) = inner.items()
    blocks = candidates(body)
    inside = bool(blocks) and all(each.startswith(f"{name}.") for each in blocks)
    return _innermost(only) if inside else body


def refuse_copies(model: nn.Module) -> None:
    """Refuse a model that is copied to several devices in every pass."""
    if any(isinstance(module, nn.DataParallel) for module in model.modules()):
        raise ConfigError(
            "expected a model that runs on one device of each process, got nn.DataParallel",
            hint="start one process per device: torchrun --nproc-per-node=N train.py; or show "
            "one device alone: CUDA_VISIBLE_DEVICES=0",
            slug="data-parallel",
        )


def token_argument(
    module: nn.Module, arguments: Arguments, keywords: Keywords, name: str
) -> Tensor | None:
    """Return an argument that a model is called with, by position or by name, or None.

    It has one entry for each token, (batch, time): a mask for pairs of tokens does not say
    which are padding.
    """
    found = keywords.get(name)
    if found is None and arguments:
        try:
            bound = inspect.signature(module.forward).bind_partial(*arguments, **keywords)
        except TypeError:  # a wrapper whose signature names nothing
            return None
        found = bound.arguments.get(name)
    return found if isinstance(found, Tensor) and found.ndim == 2 else None


@contextmanager
def evaluating(model: nn.Module) -> Generator[None]:
    """Put a model into evaluation mode, and every part of it back into its own."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def trains(module: nn.Module) -> bool:
    """Whether a pass is one of training, and not repeated in a backward pass."""
    return module.training and torch.is_grad_enabled() and not recomputing()


def recomputing() -> bool:
    """Whether this forward pass only repeats one, inside a backward pass (checkpointing)."""
    return torch._C._current_graph_task_id() != -1  # pyright: ignore[reportPrivateUsage]


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a model: that of its first parameter."""
    return next((each.device for each in model.parameters()), torch.device("cpu"))
