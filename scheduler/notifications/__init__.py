"""Messages to sites, coordinators and operators."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "notifications",
    sections=(("notify", Lazy("scheduler.notifications.settings:NotifySettings")),),
    steps=(StepEntry("notify", Lazy("scheduler.notifying:NOTIFY"), after=("watch", "score")),),
    facade=Lazy("scheduler.notifications.notifier:notifier"),
)
