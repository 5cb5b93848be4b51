"""The table of reasons stays bounded, whatever plugins from outside write into it."""

from __future__ import annotations

from moorage.framework.status import ReasonTable

FULL = "a reason that is not shown, because the table of reasons is full"


def test_a_full_table_gives_further_reasons_one_id() -> None:
    table = ReasonTable(characters_max=20)
    ids = [table.intern(f"{number:010}") for number in range(6)]
    assert ids == [1, 2, 3, 4, 4, 4]
    assert [table.reasons(each) for each in (1, 3, 4)] == [
        ("0000000000",),
        ("0000000002",),
        (FULL,),
    ]
    assert table.intern("0000000001") == 2, "a reason of the table keeps its id"


def test_a_long_reason_is_cut_once() -> None:
    table = ReasonTable()
    first, second = (table.intern("a" * 50_000_000) for _ in range(2))
    assert first == second
    assert len(table.reasons(first)[0]) == 4096
