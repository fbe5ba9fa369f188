"""PrometheusListener: events and shared state as metrics of prometheus_client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra, StoreError
from .figures import DELAYS
from .metrics import METRICS, BoundedLabels, changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import GaugeMetricFamily

    from ..core.events import Event
    from ..core.ports import Store

__all__ = ("PrometheusListener",)

_BUCKETS = {"retry_delay_seconds": DELAYS, "retry_call_attempts": (1, 2, 3, 4, 5, 7, 10, 20)}
_BREAKER = {"closed": 0.0, "allowed": 0.0, "half open": 1.0, "open": 2.0, "blocked": 2.0}


class PrometheusListener:
    """A listener that counts events in a registry of prometheus_client.

    Breaker, gate and retry tokens are read from the store when the registry is scraped, so they
    are those of the whole fleet. While the store is down they are absent, and counters stay.

    Args:
        registry: Where the metrics are registered; by default prometheus_client's own.
        store: Where breaker, gate and tokens are read; a store or its address. Default: as guards,
            ``MULLIGAN_STORE``, else this process's memory.
        targets: How many targets get a label value of their own; the others share ``other``.
        successes: Whether to count calls that succeed at once, too.

    Raises:
        MissingExtra: prometheus_client is not installed.
        ValueError: The registry has these metrics already: give one listener to all guards.
    """

    is_quick = True

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        store: Store | str | None = None,
        targets: int = 100,
        successes: bool = False,
    ) -> None:
        try:
            import prometheus_client as client
        except ImportError:
            raise MissingExtra("mulligan.PrometheusListener", "prometheus") from None
        self.successes = successes
        self._label = BoundedLabels(targets)
        self._store, self._targets = store, targets
        own = client.REGISTRY if registry is None else registry
        self._metrics: dict[str, Any] = {}
        for metric in METRICS.values():
            labels = ("target", metric.label) if metric.label else ("target",)
            about = (metric.name, metric.help, labels)
            if metric.kind == "counter":
                self._metrics[metric.name] = client.Counter(*about, registry=own)
            elif metric.kind == "histogram":
                buckets = _BUCKETS[metric.name]
                self._metrics[metric.name] = client.Histogram(*about, buckets=buckets, registry=own)
        own.register(self)  # its gauges are collected when the registry is scraped

    def __call__(self, event: Event, /) -> None:
        target = self._label(event.target)
        for change in changes(event):
            metric = self._metrics[change.name]
            labels = (target, change.label) if METRICS[change.name].label else (target,)
            if METRICS[change.name].kind == "counter":
                metric.labels(*labels).inc(change.value)
            else:
                metric.labels(*labels).observe(change.value)

    def _gauges(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """The gauges as they stand in the store: name, labels, value."""
        from ..shared.snapshot import snapshots
        from ..shared.target import store_for

        try:
            store = store_for(self._store)
            # Accounts of one target share its labels: the worst of them counts.
            rows = snapshots(store)
        except StoreError:
            return
        worst: dict[tuple[str, tuple[str, ...]], float] = {}
        label = BoundedLabels(self._targets)
        for row in rows:
            target, dimension = label(row["target"]), BoundedLabels(20)
            found: list[tuple[str, tuple[str, ...], float]] = [
                ("retry_breaker_state", (target,), _BREAKER[row["breaker"]["state"]]),
                ("retry_gate_opens_in_seconds", (target,), row["gate"]["for"] or 0.0),
                ("retry_tokens_left", (target,), row["tokens"]["left"]),
            ]
            for limit in row["gate"]["limits"]:
                both = (target, dimension(limit["dimension"]))
                found.append(("retry_gate_remaining", both, limit["remaining"]))
            for name, labels, value in found:
                is_less = name in {"retry_tokens_left", "retry_gate_remaining"}
                before = worst.get((name, labels), value)
                worst[name, labels] = min(before, value) if is_less else max(before, value)
        for (name, labels), value in worst.items():
            yield name, labels, value

    def describe(self) -> list[GaugeMetricFamily]:
        """The gauges without values: registering must not read a store."""
        return list(self._families().values())

    def collect(self) -> list[GaugeMetricFamily]:
        """The gauges with their values; none while the store is down."""
        families = self._families()
        for name, labels, value in self._gauges():
            families[name].add_metric(labels, value)
        return list(families.values())

    @staticmethod
    def _families() -> dict[str, GaugeMetricFamily]:
        from prometheus_client.metrics_core import GaugeMetricFamily

        return {
            each.name: GaugeMetricFamily(
                each.name,
                each.help,
                labels=["target", each.label] if each.label else ["target"],
            )
            for each in METRICS.values()
            if each.kind == "gauge"
        }
