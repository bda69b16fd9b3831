"""A Wi-Fi that is there."""

STA_IF = 0


class WLAN:
    def __init__(self, which: int) -> None:
        self._joined = False

    def active(self, on: bool) -> None:
        pass

    def connect(self, ssid: str, password: str) -> None:
        assert (ssid, password) == ("home", "secret")
        self._joined = True

    def isconnected(self) -> bool:
        return self._joined
