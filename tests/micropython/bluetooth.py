"""MicroPython's ``bluetooth`` over a socket, for a port that has none: what firmware asks of the
radio goes to the test, what the radio reports comes back.

Each message is a letter (or event number), a handle, a length (u16) and a value: a small heap
has no room for more. Unlike the real one nothing interrupts: reports are delivered in
``BLE.poll``, which the test's device calls where MicroPython would run its scheduled interrupts.
"""

import os
import socket
import struct

_HEAD = "<BBH"
_HEAD_BYTES = 4


class UUID:
    def __init__(self, text):
        self.text = text


class BLE:
    def __init__(self):
        self._socket = socket.socket()
        self._socket.connect(socket.getaddrinfo("127.0.0.1", int(os.getenv("RADIO_PORT")))[0][-1])
        self._values = {}
        self._irq = None

    def _say(self, what, handle=0, value=b""):
        self._socket.setblocking(True)
        for data in (struct.pack(_HEAD, ord(what), handle, len(value)), value):
            sent = 0
            while sent < len(data):
                sent += self._socket.send(data[sent:])

    def active(self, on):
        return on

    def config(self, **values):
        pass

    def irq(self, handler):
        self._irq = handler

    def gatts_register_services(self, services):
        handle = 0
        found = []
        for uuid, characteristics in services:
            told = [uuid.text]
            first = handle + 1
            for characteristic, flags in characteristics:
                handle += 1
                told.append(f"{handle} {characteristic.text} {flags}")
            self._say("R", 0, ",".join(told).encode())
            found.append(tuple(range(first, handle + 1)))
        return tuple(found)

    def gatts_set_buffer(self, handle, length, append=False):
        pass

    def gatts_read(self, handle):
        return self._values.get(handle, b"")

    def gatts_write(self, handle, value):
        self._say("W", handle, value)

    def gatts_notify(self, connection, handle, value):
        self._say("N", handle, value)

    def gap_advertise(self, interval_us, adv_data=b"", resp_data=b""):
        self._say("A", 0, adv_data)

    def gap_disconnect(self, connection):
        self._say("D")

    def _receive(self, length):
        data = b""
        while len(data) < length:
            part = self._socket.recv(length - len(data))
            if not part:
                raise OSError("the test is gone")
            data += part
        return data

    def poll(self, wait_s):
        """Deliver what the radio has reported, waiting at most so long for the first of it."""
        while True:
            self._socket.settimeout(wait_s)
            try:
                head = self._socket.recv(1)
            except OSError:
                return
            if not head:
                raise OSError("the test is gone")
            self._socket.setblocking(True)
            event, handle, length = struct.unpack(_HEAD, head + self._receive(_HEAD_BYTES - 1))
            value = self._receive(length)
            if event == 3:
                self._values[handle] = value
            self._irq(event, (0, handle))
            wait_s = 0.001
