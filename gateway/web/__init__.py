"""The page and its JSON doors: reads snapshots, writes only through what it is handed."""

from gateway.web.services import LOOPBACK_HOSTS, Asker, Done, Services
from gateway.web.site import create_app

__all__ = ["LOOPBACK_HOSTS", "Asker", "Done", "Services", "create_app"]
