"""The verb of matrices: I(W) of the input and output embeddings of a model."""

import os
from typing import TYPE_CHECKING, Any

from isoscope.report.escape import plain
from isoscope.report.number import count, shown
from isoscope.report.records import Records
from isoscope.report.table import Column, Table

if TYPE_CHECKING:
    from isoscope.lab.embedding_matrices import MatrixIsotropy

ONE_SIDED = "as published: one sign of each eigenvector, whichever the solver gives"


class MatrixTable(Records["MatrixIsotropy"]):
    """I(W) of each matrix, about the origin and about its mean."""

    as_published = False  # which of the two values tables show

    @property
    def tables(self) -> tuple[Table, ...]:
        """A line a matrix and centre."""
        published = self.as_published
        values = [each.as_published if published else each.value for each in self]
        logs = ("" if published else f"{each.log_value:.3g}" for each in self)
        drawn = (
            "" if each.reference is None else shown(each.reference, None, None)[0]
            for each in self
        )
        columns = (
            Column("site", tuple(plain(each.site) for each in self), words=True),
            Column("about", tuple(_about(each) for each in self), words=True),
            Column("I(W)", tuple(shown(value, None, None)[0] for value in values)),
            Column("log I(W)", tuple(logs)),
            Column("random rows", tuple(drawn)),
            Column("rows", tuple(count(each.rows) for each in self)),
            Column("d", tuple(count(each.width) for each in self)),
        )
        caption = f"model {plain(str(self.shared['model']))}, I(W): 1 is isotropic, 0 collapsed"
        kept = tuple(column for column in columns if any(column.cells))
        return (Table(caption, kept, self.remarks),)


def matrices(
    model: str | os.PathLike[str] | Any,
    *,
    against_random: bool = False,
    as_published: bool = False,
    **given: Any,
) -> MatrixTable:
    """Say how isotropic the rows of a model's matrices are: I(W), raw and centred.

    Two-sided unless `as_published`; records have both. `against_random` adds I of random rows
    with the same norms. `given` goes to the loader: dtype, device, trust_remote_code, say.
    """
    from isoscope.verbs.subject import subject

    found = subject(model, **given)
    from isoscope.lab import matrix_isotropy

    told = matrix_isotropy(found, against_random=against_random)
    remarks = [told.remark] if told.tied else []
    answer = MatrixTable(
        told.matrices,
        shared={"model": found.loaded.name, "tied": told.tied},
        remarks=[*remarks, ONE_SIDED] if as_published else remarks,
    )
    answer.as_published = as_published
    return answer


def _about(each: "MatrixIsotropy") -> str:
    return "its mean" if each.centred else "the origin"
