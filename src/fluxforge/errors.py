"""The exceptions of the package. The command line prints each as one line and exits with its code."""


class FluxforgeError(Exception):
    """Base class of all errors of the package; a run that failed: exit code 1."""

    exit_code = 1


class InputError(FluxforgeError, ValueError):
    """Bad input: exit code 2. The message names the file, the element or the field, and says what to do."""

    exit_code = 2


class StorageError(FluxforgeError):
    """A file that the system could not write or read (disk full, folder removed): exit code 1.

    The results are not affected: when the cause is removed, the run can be resumed.
    """


class MeshError(InputError):
    """A mesh that cannot be used: the message names the cell, the point or the edge."""


class MeshReadError(MeshError):
    """A mesh file that cannot be read: the message begins with the path."""


class ExpressionError(InputError):
    """A formula that cannot be parsed: the message shows where."""


class EquationError(InputError):
    """An equation that cannot be used: the message begins with its file or its name, and names the field."""


class SchemeError(InputError):
    """A scheme that is not well-formed: the message names the stage and the message or output."""


class DocumentError(InputError):
    """A fluxforge JSON document that cannot be used: wrong kind, newer version, missing or unknown field."""


class RecipeError(InputError):
    """A recipe that cannot be used: the message begins with the file (or the command line) and names the field."""


class InstabilityError(FluxforgeError):
    """A run that blew up: the message says at which step."""


class NumericalError(FluxforgeError):
    """A numerical method that failed: an iteration that did not converge, a singular system."""


class TrainingError(FluxforgeError):
    """A training run that cannot continue: the message names the seeds that failed, the step, and what was saved."""


class DiscoveryError(FluxforgeError):
    """No formula was found or accepted: the message names the stage.

    The only error that becomes the reason of a `refused` verdict; system failures and bugs do not.
    """
