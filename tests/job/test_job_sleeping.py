"""What is recorded of a sleep adds up what its ticks brought."""

from __future__ import annotations

from runtime.context.payloads import Applied
from runtime.context.states import Wait
from runtime.job.sleeping import Sleep, Sleeping


def test_a_sleep_tells_what_all_its_ticks_applied_and_dropped() -> None:
    sleeping = Sleeping()
    sleeping.state = Sleep(waits=(Wait(),), since=0.0, began=0.0)

    sleeping.landed([Applied(obj_id="a", turn=1, effect=2)], dropped=2)
    sleeping.state = sleeping.state.model_copy(update={"news": (5.0,)})
    sleeping.landed([Applied(obj_id="b", turn=1, effect=3)], dropped=1)
    sleeping.wake("a message", 60.0)

    told = sleeping.take()
    assert told.woken == "slept 60 s; woken by a message"
    assert told.asleep == ((0, "a", 1, 2), (1, "b", 1, 3))
    assert told.dropped == 3
    assert sleeping.take().dropped == 0, "told once"
