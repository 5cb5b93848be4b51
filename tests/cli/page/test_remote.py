"""A scheduler elsewhere as the source of a page's answers."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from moorage.cli.page.remote import Remote
from moorage.client.transport import Answer, Call, LineStream


class Server:
    """Answers every call, and notes it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    async def request(self, call: Call) -> Answer:
        self.calls.append((call.method, call.path))
        return Answer(200, {}, b"{}")

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        raise NotImplementedError

    async def close(self) -> None:
        return None


async def test_changes_to_try_are_posted() -> None:
    server = Server()
    await Remote(server, "/before").ask("/what-if", {}, b'{"changes":[]}')
    assert server.calls == [("POST", "/before/moorage/v1/what-if")]
