"""The specs of `isoscope curvature`: of draws on manifolds, and of a model."""

from typing import Annotated, ClassVar, Literal, Self, cast

from isoscope.accumulate.neighbourhoods import KEPT
from isoscope.display import Results
from isoscope.engine.plan import Packed, Plan, Unit
from isoscope.lab.curvature.results import CurvatureRecord
from isoscope.study.documents import DocumentsSpec, SurveyPlan
from isoscope.study.model import ModelSpec
from isoscope.study.option import about

RADII = (0.8, 0.4, 0.2, 0.1, 0.05, 0.025)
BIASES = (0.0, 0.25, 0.5, 1.0)
Name = Literal["parabola", "paraboloid", "sphere"]


class Draw(Unit, frozen=True, tag=True):
    """One draw of points on one manifold, at every radius and bias."""

    manifold: str
    seed: int


class CurvaturePlan(Plan, frozen=True, kw_only=True):
    """Draws of every manifold."""

    stages: tuple[tuple[Draw, ...], ...]


class OptionalModelSpec(ModelSpec, frozen=True, kw_only=True):
    """Which model, if any, and how it is loaded."""

    model: Annotated[
        str | None,
        about(
            "A folder, a GGUF file, or a name on the hub with @revision: its token types "
            "instead of a simulation.",
            "[MODEL]",
            argument=True,
            path=True,
        ),
    ] = None


class CurvatureSpec(DocumentsSpec[Results[CurvatureRecord]], frozen=True, kw_only=True):
    """Sample neighbourhoods on manifolds of known curvature, and compare with closed forms.

    One record per manifold, radius and quantity: tangent and normal energy, their ratio, and
    the normal share of the gradient of a linear map; per manifold and bias of frequency the
    share of energy that is normal; and the exponents of the radius. With `model`, tangent
    and normal variance of the neighbourhoods of its token types against frequency instead.
    """

    command: ClassVar[str] = "curvature"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = CurvaturePlan
    worker_at: ClassVar[str] = "isoscope.lab.curvature.worker:CurvatureWorker"

    load: OptionalModelSpec = OptionalModelSpec()
    manifolds: Annotated[
        tuple[Name, ...],
        about("parabola, paraboloid or sphere.", "NAME,NAME", commas=True, noun="manifold"),
    ] = ("parabola", "paraboloid", "sphere")
    dimension: Annotated[
        int, about("Dimension of the paraboloid and the sphere.", "N", least=1, most=1024)
    ] = 2
    radii: Annotated[
        tuple[float, ...],
        about("Radii of neighbourhoods; those of a sphere are at most 1.", "T,T", commas=True),
    ] = RADII
    bias: Annotated[
        tuple[float, ...],
        about(
            "How fast the radius of a type falls with its frequency: radius ~ frequency^-B.",
            "B,B",
            commas=True,
            least=0.0,
            most=4.0,
        ),
    ] = BIASES
    types: Annotated[
        int, about("Token types, whose frequency is one over their rank.", "N", least=1)
    ] = 1000
    samples: Annotated[
        int, about("Points per neighbourhood, and tokens per bias.", "N", least=4)
    ] = 10_000
    draws: Annotated[int, about("Draws of points.", "N", least=1)] = 20
    sites: Annotated[
        tuple[str, ...] | None,
        about(
            "With a model: sites or families, such as resid, norm.out or resid.3",
            "S,S",
            default="resid",
            commas=True,
        ),
    ] = None
    rank: Annotated[
        int, about("With a model: dimension of the tangent space of a type.", "K", least=1)
    ] = 4
    occurrences: Annotated[
        int,
        about(
            "With a model: occurrences of each type, one per document.",
            "N",
            least=16,
            most=4096,
        ),
    ] = KEPT
    per_band: Annotated[
        int,
        about("With a model: types per half decade of frequency at most.", "N", least=1),
    ] = 32
    frequencies: Annotated[
        str | None,
        about(
            "With a model: counts of tokens, npy or json",
            "FILE",
            default="the corpus is counted",
            path=True,
        ),
    ] = None

    @classmethod
    def of(cls, **values: object) -> Self:
        """Return a checked spec; with a model, that of its token types."""
        found = super().of(**values)
        if found.load.model is None:
            return found
        fields = {name: getattr(found, name) for name in found.__struct_fields__}
        return cast(Self, NeighbourhoodSpec(**fields))


class NeighbourhoodPlan(SurveyPlan, frozen=True, kw_only=True):
    """The documents, sites and token types of a model."""

    types: Packed  # ids, ascending


class NeighbourhoodSpec(CurvatureSpec, frozen=True, kw_only=True):
    """Read tangent and normal variance of the token types of a model."""

    keeps: ClassVar[str] = "summaries"
    plans: ClassVar[type[Plan]] = NeighbourhoodPlan
    worker_at: ClassVar[str] = "isoscope.lab.curvature.model_worker:NeighbourhoodWorker"
    torch_for: ClassVar[str] = "curvature of a model"
