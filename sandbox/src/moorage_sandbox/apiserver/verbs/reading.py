"""The verbs get and list.

A list is answered from the newest state where the resourceVersion rules allow it. Only
``resourceVersionMatch=Exact`` and later pages do not allow it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from moorage.kinds.kind import FieldError, Obj, forbidden, not_supported
from moorage.kinds.status import (
    bad_request,
    expired,
    invalid_options,
    not_found,
    version_too_large,
)
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.verbs.pages import Token, decode_token, encode_token, too_old
from moorage_sandbox.apiserver.verbs.selection import Selection, read_selection
from moorage_sandbox.apiserver.wire.render import Renderer
from moorage_sandbox.apiserver.wire.requests import Body, Query, version_number
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.store import Store

_VERSION_MATCHES = ("Exact", "NotOlderThan")


def get_record(store: Store, target: Target, query: Query | None = None) -> Record:
    """Return the object at a path.

    Raises
    ------
    StatusError
        404: it does not exist. 504: the resourceVersion asked for lies in the future.
    """
    if query is not None:
        _check_not_ahead(version_number(query.text("resourceVersion")), store)
    record = store.shelf(target.served.shelf).get((target.namespace, target.name))
    if record is None:
        raise not_found(target.served.kind.resource, target.name)
    return record


class Lister:
    """Answers lists.

    Parameters
    ----------
    store
        Holds the objects.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def list(self, target: Target, query: Query, renderer: Renderer) -> Body:
        """Return one list, or one page of it, as bytes.

        Raises
        ------
        StatusError
            400: a parameter cannot be read. 410: the version or the page asked for is gone.
            422: parameters contradict each other. 504: a version in the future.
        """
        selection = read_selection(target, query)
        limit = query.whole("limit") or 0
        check_list_options(query, watching=False)
        if token_text := query.text("continue"):
            if query.text("resourceVersion") not in ("", "0"):
                text = "specifying resource version is not allowed when using continue"
                raise bad_request(text)
            token = decode_token(token_text)
            records, version = self._rest(target, selection, token)
        else:
            records, version = self._start_list(target, selection, query)
        return self._page(selection, renderer, (records, version, limit))

    def matching(self, target: Target, selection: Selection) -> Iterable[Record]:
        """Yield the selected objects of the present state, in key order."""
        return self.present(target, selection)[0]

    def present(self, target: Target, selection: Selection) -> tuple[Iterable[Record], int]:
        """Return the selected objects of the present state, in key order, and its version."""
        shelf = self._store.shelf(target.served.shelf)
        if selection.namespace and (name := selection.one_name()):
            found, version = self._store.at_home(
                lambda: (shelf.get((selection.namespace, name)), self._store.version)
            )
            return [found] if found and selection.selects_record(found) else [], version
        records, version = self._store.at_home(
            lambda: (shelf.listed(selection.namespace), self._store.version)
        )
        return records if selection.everything else filter(
            selection.selects_record, records
        ), version

    def _start_list(
        self, target: Target, selection: Selection, query: Query
    ) -> tuple[Iterable[Record], int]:
        asked = version_number(query.text("resourceVersion"))
        _check_not_ahead(asked, self._store)
        if query.text("resourceVersionMatch") == "Exact":
            assert asked, "check_list_options has refused Exact without a version"
            return self._exact(target, selection, asked)
        return self.present(target, selection)

    def _exact(
        self, target: Target, selection: Selection, version: int
    ) -> tuple[Iterable[Record], int]:
        shelf_name = target.served.shelf
        # Read before the question whether anything has changed since the version.
        records = self.matching(target, selection)
        if self._store.shelf(shelf_name).changed_version <= version:
            return records, version
        kept = self._store.records_at(shelf_name, version, selection.namespace)
        if kept is None:
            raise expired()
        return filter(selection.selects_record, kept), version

    def _rest(
        self, target: Target, selection: Selection, token: Token
    ) -> tuple[Iterable[Record], int]:
        if token.version < 0:
            shelf = self._store.shelf(target.served.shelf)
            rest, version = self._store.at_home(
                lambda: (
                    shelf.listed(selection.namespace, after=token.key),
                    self._store.version,
                )
            )
            return filter(selection.selects_record, rest), version
        records = self._store.records_at(
            target.served.shelf, token.version, selection.namespace, after=token.key
        )
        if records is None:
            raise too_old(token)
        return filter(selection.selects_record, records), token.version

    def _page(
        self,
        selection: Selection,
        renderer: Renderer,
        records_page: tuple[Iterable[Record], int, int],
    ) -> Body:
        """Cut one page off, and return the token of the next page."""
        records, version, limit = records_page
        list_meta: Obj = {"resourceVersion": str(version)}
        if limit <= 0:
            return renderer.many(list(records), list_meta)
        source = iter(records)
        page = list(islice(source, limit))
        remaining = sum(1 for _ in source)
        if remaining:
            last = page[-1]
            token = Token(version=version, namespace=last.namespace, name=last.name)
            list_meta["continue"] = encode_token(token)
            if selection.everything:
                list_meta["remainingItemCount"] = remaining
        return renderer.many(page, list_meta)


def check_list_options(query: Query, *, watching: bool) -> None:
    """Refuse contradicting parameters (apimachinery v1.36 internalversion/validation).

    Raises
    ------
    StatusError
        422, with a cause for each fault.
    """
    match = query.text("resourceVersionMatch")
    errors = _watch_errors(query, match) if watching else _list_errors(query, match)
    if errors:
        raise invalid_options("ListOptions", errors)


def _watch_errors(query: Query, match: str) -> list[FieldError]:
    field = "resourceVersionMatch"
    errors = []
    if "sendInitialEvents" in query:
        if match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            errors.append(forbidden(field, text))
    elif match:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        errors.append(forbidden(field, text))
    if match and match != "NotOlderThan":
        errors.append(not_supported(field, match, ["NotOlderThan"]))
    return errors


def _list_errors(query: Query, match: str) -> list[FieldError]:
    field = "resourceVersionMatch"
    errors = []
    if "sendInitialEvents" in query:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if not match:
        return errors
    version = query.text("resourceVersion")
    if not version:
        text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        errors.append(forbidden(field, text))
    if query.text("continue"):
        text = "resourceVersionMatch is forbidden when continue is provided"
        errors.append(forbidden(field, text))
    if match not in _VERSION_MATCHES:
        errors.append(not_supported(field, match, _VERSION_MATCHES))
    elif match == "Exact" and version == "0":
        text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        errors.append(forbidden(field, text))
    return errors


def _check_not_ahead(version: int | None, store: Store) -> None:
    if version is not None and version > store.version:
        raise version_too_large(version, store.version)
