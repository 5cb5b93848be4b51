"""The tree of operating failures, drawn first.

    MoorageError
    +-- UsageError             bad flag, file or value given by a person; exit code 2
    |   +-- ConfigError        an invalid scheduler configuration, with every fault listed
    |   +-- KubeconfigError    a kubeconfig that cannot be read or used
    +-- NotBuiltError          a Kubernetes feature moorage knows of but does not have yet
    +-- DecodeError            bytes that are not the object they should be
    +-- ApiError               the API server answered with a Status that is not success
    |   +-- NotFoundError      404
    |   +-- ConflictError      409
    |   +-- GoneError          410: a resourceVersion too old to continue from
    |   +-- UnauthorizedError  401 or 403
    |   +-- TooManyRequestsError  429
    +-- LimitReachedError      an answer was ended at a stated limit of time or memory
    +-- ExtenderError          an HTTP extender failed, refused, or answered nonsense
    |   +-- ExtenderSilentError  it gave no answer, so it may have acted
    +-- TransportError         no answer: refused, reset, timed out
    |   +-- RefusedError       no connection could be made, so nothing was sent
    |       +-- NotLeadingError  a write held back, because another replica may lead by now
    +-- LeaseLostError         the leader's lease could not be renewed; the process ends
    +-- TaskEndedError         a task has ended without which the process cannot go on
    +-- CacheError             a fact reported to the cache contradicts its belief
        +-- CacheCorruptedError  believing on would place pods wrongly

Rejections of a pod are `Status` values (framework), never exceptions. Bugs are assertions.
Operating failures are caught in `service` and `cli` only.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.base.outside_texts import cut_text


class MoorageError(Exception):
    """Base of every failure moorage raises deliberately."""


class UsageError(MoorageError):
    """A person gave a flag, a file or a value that cannot be used."""


class ConfigError(UsageError):
    """A scheduler configuration is invalid.

    Parameters
    ----------
    faults
        Every fault found, each as a Kubernetes field error
        (``parallelism: Invalid value: 0: should be ...``).
    source
        Where the configuration came from, usually a file name.
    """

    def __init__(self, faults: Sequence[str], *, source: str = "") -> None:
        self.faults = tuple(faults)
        self.source = source
        where = f"{source}: " if source else ""
        if len(self.faults) == 1:
            text = f"{where}{self.faults[0]}"
        else:
            lines = "".join(f"\n  - {fault}" for fault in self.faults)
            text = f"{where}{len(self.faults)} faults in the configuration:{lines}"
        super().__init__(text)


class KubeconfigError(UsageError):
    """A kubeconfig cannot be read, or names an entry that it does not contain."""


class NotBuiltError(MoorageError):
    """A feature is known but not built yet; the message names the feature and an alternative."""


class LimitReachedError(MoorageError):
    """The computation of an answer was ended at a limit; the message names the limit."""


class DecodeError(MoorageError):
    """Bytes do not decode to the object they should be; names the object and the field."""


class TransportError(MoorageError):
    """A call got no answer: connection refused, reset, TLS failure or timeout.

    Whether the server acted on the call is unknown; look before retrying a write.
    """


class RefusedError(TransportError):
    """No connection could be made: the server certainly did not act, repeating is safe."""


class AnswerTooLargeError(TransportError):
    """The server's answer was longer than is read; the server may have acted on the call."""


class NotLeadingError(RefusedError):
    """A write was not sent, because this process does not hold the leader's lease (any more)."""


class LeaseLostError(MoorageError):
    """The lease of the leader was not renewed in time: another replica may be scheduling."""


class TaskEndedError(MoorageError):
    """A task that the process cannot do without has ended without a failure of its own."""


class ExtenderError(MoorageError):
    """An HTTP extender gave no answer, another code than 200, an error, or an invalid answer.

    The attempt ends with this message, unless the extender may be ignored. A long message is cut,
    because it may be the extender's.
    """

    def __init__(self, text: str) -> None:
        super().__init__(cut_text(text))


class ExtenderSilentError(ExtenderError):
    """An HTTP extender was asked and gave no answer: it may have acted nevertheless."""


class CacheError(MoorageError):
    """The cache was told a fact that contradicts its belief; it changed nothing.

    The message is kube-scheduler's. The caller logs it: the next watch event corrects the cache.
    """


class CacheCorruptedError(CacheError):
    """The cache's belief contradicts the API in a way no later event repairs.

    kube-scheduler ends its process here; the service decides.
    """


class ApiError(MoorageError):
    """The API server answered with a ``Status`` that is not success.

    Parameters
    ----------
    code
        HTTP status code.
    reason
        Machine-readable reason (``NotFound``, ``AlreadyExists``, ...), possibly empty.
    message
        The server's text.
    retry_after_seconds
        Value of ``Retry-After``, or None when the server sent none.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        retry_after_seconds: float | None = None,
    ) -> None:
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message or f"{code} {reason}")


class NotFoundError(ApiError):
    """404: the object, or the resource type, does not exist."""


class ConflictError(ApiError):
    """409: exists already, a precondition failed, or the resourceVersion moved on."""


class GoneError(ApiError):
    """410: the given resourceVersion is older than the versions that the server keeps."""


class UnauthorizedError(ApiError):
    """401 or 403: credentials missing, wrong, or not allowed to do this."""


class TooManyRequestsError(ApiError):
    """429: the server asks to slow down; ``retry_after_seconds`` says for how long."""


_BY_CODE: dict[int, type[ApiError]] = {
    401: UnauthorizedError,
    403: UnauthorizedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: TooManyRequestsError,
}


def api_error(
    code: int, reason: str, message: str, *, retry_after_seconds: float | None = None
) -> ApiError:
    """Build the most specific `ApiError` for an HTTP status code."""
    kind = _BY_CODE.get(code, ApiError)
    return kind(code, reason, message, retry_after_seconds=retry_after_seconds)
