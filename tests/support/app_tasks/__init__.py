"""Tasks on real applications."""

from __future__ import annotations

from support.app_tasks import canvases, django, dokuwiki, editors, frames, jupyter, widgets
from support.scripted_agent import TaskBuilder

TASKS: dict[str, TaskBuilder] = {
    f"{module.__name__.rpartition('.')[2]}.{builder.__name__}": builder
    for module in (django, dokuwiki, jupyter, frames, editors, widgets, canvases)
    for builder in module.TASKS
}
