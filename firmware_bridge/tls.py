"""TLS for a device's link: it speaks only to whom the owner's authority signed, by the name it was told.

A connected socket in, a stream with the socket's ``send`` and ``recv`` out; nothing here waits.
Certificates are checked by the port's own ``ssl`` (mbedTLS on MicroPython, OpenSSL on CPython):
the authority, the name, and the dates where the port has a clock it believes. A device that has
no clock yet cannot check dates; a MicroPython build for one leaves them out. Built-in modules
only; the same file runs on both.
"""

import errno
import select
import socket
import ssl
from binascii import a2b_base64

from firmware_bridge.mqtt import Client, MQTTError
from firmware_bridge.uplink import Uplink

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"


def authority(pem: bytes) -> bytes:
    """The first certificate of a PEM text as DER, which is all a small port reads.

    Raises
    ------
    ValueError
        The text holds no certificate.
    """
    start, end = pem.find(_BEGIN), pem.find(_END)
    if not 0 <= start < end:
        raise ValueError("an authority must be a PEM text with a certificate, this one has none")
    return a2b_base64(pem[start + len(_BEGIN) : end])


class Trust:
    """What a link is checked against. Made once; serves every connection.

    Parameters
    ----------
    der : bytes
        The authority's certificate (:func:`authority`).
    name : str
        The host name or address the broker's certificate must bear.
    """

    def __init__(self, der: bytes, name: str) -> None:
        self.name = name
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            self._context.load_verify_locations(cadata=der)
        except (OSError, ValueError) as bad:
            raise ValueError(f"an authority must be a certificate, this one is none: {bad}") from None
        self._context.verify_mode = ssl.CERT_REQUIRED

    def client(self, *words, **options) -> "SecureClient":  # type: ignore[no-untyped-def]
        """A ``mqtt.Client`` of these arguments whose link is checked against this."""
        return SecureClient(self, *words, **options)

    def secure(self, uplink: Uplink) -> None:
        """Let an uplink that is not connected speak only under TLS from now on."""
        plain = uplink.client
        words = [getattr(plain, "_" + name) for name in ("host", "port", "client_id", "now")]
        named = ("user", "password", "keepalive_s", "wait_ms", "will")
        uplink.client = self.client(*words, **{name: getattr(plain, "_" + name) for name in named})

    def over(self, link: socket.socket) -> ssl.SSLSocket:
        """The connected, non-blocking socket under TLS; the handshake comes with the first bytes."""
        return self._context.wrap_socket(link, server_hostname=self.name, do_handshake_on_connect=False)


class Secure:
    """A stream under TLS that behaves as a non-blocking socket does.

    Attributes
    ----------
    stream
        What ``select.poll`` watches.
    waits_for : int
        ``POLLIN`` where bytes must come before more can be sent (a handshake), else ``POLLOUT``.
    """

    def __init__(self, stream: ssl.SSLSocket, name: str, close) -> None:  # type: ignore[no-untyped-def]
        self.stream = stream
        self._close = close
        self.waits_for = select.POLLOUT
        self._name = name

    def send(self, packet: bytes) -> int:
        """How many bytes went out.

        Raises
        ------
        OSError
            ``EAGAIN``: not now; anything else: the link is gone.
        MQTTError
            ``untrusted``: the certificate is not what the owner's authority signed for that name.
        """
        try:
            sent = self.stream.send(packet)
        except (OSError, ValueError) as trouble:  # ports name one thing differently
            raise self._told(trouble) from None
        if not sent:
            raise OSError(errno.EAGAIN, "not now")
        return sent

    def recv(self, count: int) -> bytes:
        """What came, all that was decrypted with it; empty where the peer has ended.

        Raises
        ------
        OSError
            ``EAGAIN``: nothing yet; anything else: the link is gone.
        MQTTError
            ``untrusted``: the certificate is not what the owner's authority signed for that name.
        """
        try:
            found = self.stream.recv(count)
            pending = getattr(self.stream, "pending", None)
            while found and pending is not None and pending():  # poll sees the socket, not what is decrypted
                found += self.stream.recv(count)
        except (OSError, ValueError) as trouble:
            raise self._told(trouble) from None
        if found is None:
            raise OSError(errno.EAGAIN, "nothing yet")
        return found

    def close(self) -> None:
        """Drop the link."""
        self.stream.close()

    def _told(self, trouble: Exception) -> Exception:
        """One error for what each port says in its own way."""
        wanted = getattr(trouble, "errno", None)
        kind = type(trouble).__name__
        if kind in ("SSLWantReadError", "SSLWantWriteError"):
            self.waits_for = select.POLLIN if kind == "SSLWantReadError" else select.POLLOUT
            return OSError(errno.EAGAIN, "not now")
        if isinstance(trouble, ValueError):  # SSLCertVerificationError is one too
            said = " ".join(str(getattr(trouble, "verify_message", "") or trouble).split())
            self._close()
            return MQTTError("untrusted", f"the broker must be {self._name}, signed by the owner's authority: {said}")
        if isinstance(trouble, OSError) and wanted not in (errno.EAGAIN, errno.EINPROGRESS):
            return OSError(errno.ECONNRESET, f"no TLS: {trouble}")
        return trouble


class _Watch:
    """``select.poll`` for a client whose link is a :class:`Secure`: it watches the stream below."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self.poll = self._poll.poll

    def register(self, link, events: int) -> None:  # type: ignore[no-untyped-def]
        self._poll.register(getattr(link, "stream", link), events)

    def modify(self, link, events: int) -> None:  # type: ignore[no-untyped-def]
        wanted = link.waits_for if events == select.POLLOUT else events
        self._poll.modify(link.stream, wanted)

    def unregister(self, link) -> None:  # type: ignore[no-untyped-def]
        self._poll.unregister(getattr(link, "stream", link))


class SecureClient(Client):
    """A client that speaks only under TLS. A class of its own, so that a device in the clear pays nothing.

    A broker that cannot prove itself raises ``MQTTError`` with the reason ``untrusted``.
    """

    def __init__(self, trust: Trust, *words, **options) -> None:  # type: ignore[no-untyped-def]
        super().__init__(*words, **options)
        self._trust = trust
        self._poll = _Watch()  # type: ignore[assignment]

    def _open(self) -> None:
        super()._open()
        link = self._socket
        if link is not None:
            self._poll.unregister(link)  # wrapping takes the socket over
            self._socket = None
            secure = Secure(self._trust.over(link), self._trust.name, self.close)
            self._poll.register(secure, select.POLLOUT)  # type: ignore[arg-type]
            self._socket = secure  # type: ignore[assignment]
