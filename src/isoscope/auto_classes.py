"""Registers the nursery's model with transformers' Auto classes, once transformers is imported.

`import isoscope` loads neither torch nor transformers. So what is registered waits for the two
modules of transformers that hold the Auto classes: right after one of them was executed, by
whomever, our classes are added to it. Until then it costs one entry in `sys.meta_path`.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

CONFIGS = "transformers.models.auto.configuration_auto"
MODELS = "transformers.models.auto.modeling_auto"


def register_config(module: ModuleType) -> None:
    """Let `AutoConfig` know the configuration."""
    from isoscope.lab.nursery.config import MODEL_TYPE, NurseryConfig

    module.AutoConfig.register(MODEL_TYPE, NurseryConfig, exist_ok=True)


def register_models(module: ModuleType) -> None:
    """Let the Auto classes know the model."""
    from isoscope.lab.nursery.config import NurseryConfig
    from isoscope.lab.nursery.model import NurseryLM, NurseryModel

    module.AutoModel.register(NurseryConfig, NurseryModel, exist_ok=True)
    module.AutoModelForCausalLM.register(NurseryConfig, NurseryLM, exist_ok=True)
    module.AutoModelForMaskedLM.register(NurseryConfig, NurseryLM, exist_ok=True)


REGISTER: dict[str, Callable[[ModuleType], None]] = {
    CONFIGS: register_config,
    MODELS: register_models,
}


class AfterImport:
    """Finds the modules of the Auto classes as Python would, and registers after they ran.

    No subclass of `MetaPathFinder`: importing that takes ten times as long as all of this.
    """

    def __init__(self) -> None:
        self.waiting = dict(REGISTER)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the usual spec of a module that is waited for; None for all others."""
        register = self.waiting.pop(fullname, None)
        spec = None if register is None else PathFinder.find_spec(fullname, path, target)
        if register is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            try_to(register, module)

        spec.loader.exec_module = exec_module  # of this loader alone
        return spec


def try_to(register: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Register, or warn: a transformers that ours does not fit is still to be used."""
    try:
        register(module)
    except Exception as error:
        import warnings

        warnings.warn(f"isoscope's nursery models cannot be loaded: {error!r}", stacklevel=2)


def install() -> None:
    """Register now what is imported already, and the rest when it will be."""
    finder = AfterImport()
    for name, register in REGISTER.items():
        module = sys.modules.get(name)
        if module is not None:
            del finder.waiting[name]
            try_to(register, module)
    if finder.waiting:
        sys.meta_path.insert(0, finder)
