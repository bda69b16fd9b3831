"""The embedded broker: iotcore (rumqttd) as a child process, reachable on this machine only.

For the demo and for homes without a broker of their own; the appliance runs mosquitto. It
speaks MQTT 3.1.1. The child ends by itself when this process does, however that happens
(it watches its end of a pipe).
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import iotcore

from gateway.errors import BrokerError, PortBusy

__all__ = ["EmbeddedBroker"]

HOST = "127.0.0.1"  # iotcore's own default is 0.0.0.0: every device on the home's network
MAX_PAYLOAD_BYTES = 20_480  # above Wire 1's 16,384, so that our own limit is the one that speaks
_START_S = 10.0
_STOP_S = 2.0  # Ctrl-C ends everything within 3 s


class EmbeddedBroker:
    """An MQTT 3.1.1 broker on 127.0.0.1, running inside ``with``. Starting blocks; call it
    before the event loop runs, or in a thread.

    Parameters
    ----------
    port : int
        TCP port to listen on.

    Raises
    ------
    PortBusy
        Another program listens there.
    BrokerError
        The child did not come up; the message says how it ended.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._broker = iotcore.Broker(port=port, listen=HOST, max_payload_size=MAX_PAYLOAD_BYTES)

    def start(self) -> None:
        """Start the child and return once it accepts connections."""
        try:
            self._broker.start(timeout=_START_S)
        except OSError:
            raise PortBusy(self.port, purpose="the embedded MQTT broker", option="--mqtt-port") from None
        except RuntimeError as problem:
            raise BrokerError(f"the embedded broker must listen on {HOST}:{self.port}, but {problem}") from problem

    def stop(self) -> None:
        """End the child and free its port. Safe to call twice."""
        self._broker.stop(timeout=_STOP_S)

    @property
    def alive(self) -> bool:
        """Whether the child runs."""
        return bool(self._broker.is_running)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
