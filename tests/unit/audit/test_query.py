from __future__ import annotations

from pathlib import Path

import anyio

from browser_shell.audit.query import follow_entries
from support.audit_logs import a_record, a_writer


async def test_follow_continues_in_the_next_file(path: Path) -> None:
    with a_writer(path, rotate_bytes=1500) as audit:
        pauses = iter(range(1000))

        def pause() -> None:
            number = next(pauses)
            if number % 2 == 0:
                portal.call(audit.record, a_record(call_id=f"c{number // 2}"))

        def follow() -> list[str]:
            call_ids: list[str] = []
            following = follow_entries(path, pause=pause)
            while len(call_ids) < 12:
                entry = next(following)
                if entry.text("call_id"):
                    call_ids.append(entry.text("call_id"))
            return call_ids

        async with anyio.from_thread.BlockingPortal() as portal:
            with anyio.fail_after(5):
                call_ids = await anyio.to_thread.run_sync(follow)
    assert call_ids == [f"c{number}" for number in range(12)]
    assert (path.parent / "audit-000001.jsonl").exists()
