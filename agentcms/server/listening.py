"""The address on which the web server listens."""

import errno
import socket


class CannotListen(Exception):
    """An error of HOST or PORT, with a message for the user."""


def find_listening_address(host: str, port: int, *, share_port: bool) -> str:
    """Return the IP address of a host on this machine. Raise CannotListen unless the port can be used there.

    The web server needs an IP address, and shares its port with other web servers of the same user. Without
    `share_port`, a port on which one of them listens is in use.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not a host name"
        raise CannotListen(f"HOST is {host!r}, which has no IP address: {reason}.") from None
    except OverflowError:
        raise CannotListen(f"Port {port} cannot be used: the highest is 65535.") from None
    with socket.socket(family, kind) as probe:
        # Without it, connections of an earlier server that are in TIME_WAIT would occupy the port for a minute.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share_port:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            probe.bind(address)
        except OSError as error:
            raise CannotListen(bind_message(host, port, error)) from None
    return str(address[0])


def bind_message(host: str, port: int, error: OSError) -> str:
    """Return why the port of a host cannot be bound, and what to change."""
    if error.errno == errno.EADDRNOTAVAIL:
        return f"HOST is {host!r}, which is not an address of this machine."
    return (
        f"Port {port} on {host} cannot be used: {error.strerror or error}. "
        f"Choose another one, for example: PORT={port % 65535 + 1}"
    )
