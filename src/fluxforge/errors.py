"""What can go wrong, as types. The command line turns each into one line and an exit code."""


class FluxforgeError(Exception):
    """A run that failed: exit code 1. Every error of the package is one of these."""

    exit_code = 1


class InputError(FluxforgeError, ValueError):
    """Bad input: exit code 2. The message names the file, the element or the field, and says what to do."""

    exit_code = 2


class StorageError(FluxforgeError):
    """A file that the system could not write or read (disk full, folder removed): exit code 1.

    It says nothing about what was computed: once the cause is gone, a run can be resumed.
    """


class MeshError(InputError):
    """A mesh that cannot be used: the message names the cell, the point or the edge."""


class MeshReadError(MeshError):
    """A mesh file that cannot be read: the message opens with the path."""


class ExpressionError(InputError):
    """A formula our parser refuses: the message shows where."""


class EquationError(InputError):
    """An equation that cannot be used: the message opens with its file or its name, and names the field."""


class SchemeError(InputError):
    """A scheme that is not well formed: the message names the stage and the message or output."""


class DocumentError(InputError):
    """A JSON document of ours that cannot be used: wrong kind, unknown version, missing or stray field."""


class RecipeError(InputError):
    """A recipe that cannot be used: the message opens with the file (or the command line) and names the field."""


class InstabilityError(FluxforgeError):
    """A run that blew up: the message says at which step."""


class NumericalError(FluxforgeError):
    """A numerical method that gave no answer: an iteration that did not converge, a singular system."""


class TrainingError(FluxforgeError):
    """A training run that cannot go on: the message says which seeds failed, at which step, and what is kept."""


class DiscoveryError(FluxforgeError):
    """A discovery whose result is that no formula was found or accepted: the message names the stage.

    The only error that becomes the reason of a `refused` verdict; failures of the system and of the program do not.
    """
