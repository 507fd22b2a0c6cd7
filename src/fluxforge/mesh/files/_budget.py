"""How much memory one mesh file may ask for, in all: a fixed amount plus a multiple of what is on the disk."""

from fluxforge.mesh.files._numbers import UnreadableError

# Bytes. Packed arrays of regular meshes shrink by up to a hundred, so an honest file stays far below this ratio.
ALLOWANCE, RATIO = 64 * 2**20, 200
# meshio makes a view of every cell array for each run of cells of one kind, of about so many bytes. An honest array has
# a number, of two bytes or more, for each cell: fifty times its size in views, which the ratio covers.
VIEW = 100


class Budget:
    """Bytes that may still be allocated for one mesh file and the files it refers to.

    Every array that is not written out in the file itself is charged here before it is made: arrays that share one
    place in the file, packed and unwritten data, lines that are listed once for each of their tags. Memory and time
    are then linear in the size of the files, whatever they claim.
    """

    def __init__(self, size: int) -> None:
        self.left = ALLOWANCE + RATIO * size

    def allow(self, size: int) -> None:
        """Another file of `size` bytes belongs to the mesh."""
        self.left += RATIO * size

    def spend(self, size: int, what: str = "unpacks to") -> None:
        """Charge `size` bytes; beyond the budget the file is refused, with `what` it does in the message."""
        self.left -= size
        if self.left < 0:
            raise UnreadableError(f"{what} far more than a mesh of its size: it is damaged, or a trap")
