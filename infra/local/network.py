"""Two hosts that have a network of their own: a namespace each, on a bridge of this machine.

It needs root and ``ip``. Where these are not to be had, all is on the loopback interface, and no
host can be cut off.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

HOSTS = ("one", "two")


@dataclass(frozen=True)
class Network:
    """The namespaces of the fleet in ``folder``, by names and addresses made from that."""

    folder: Path

    @property
    def _id(self) -> str:
        # Short: the kernel takes 15 characters as a device's name.
        return sha256(str(self.folder).encode()).hexdigest()[:8]

    @property
    def address(self) -> str:
        """Where this machine is, for the hosts."""
        return self._address(1)

    def of_host(self, host: str) -> str:
        """Where a host is."""
        return self._address(11 + HOSTS.index(host))

    def _address(self, last: int) -> str:
        number = int(self._id, 16)
        # Of the addresses from 10.64.0.0 to 10.127.255.255 one network for each folder, so that
        # fleets beside each other seldom meet.
        return f"10.{64 + number % 64}.{number // 64 % 256}.{last}"

    def namespace(self, host: str) -> str:
        """The namespace of a host."""
        return f"hf-{self._id}-{host}"

    @property
    def _bridge(self) -> str:
        return f"hf{self._id}"

    def _cable(self, host: str) -> tuple[str, str]:
        """A host's cable: the end at the bridge, and its own."""
        return f"h{self._id}{host[:1]}b", f"h{self._id}{host[:1]}h"

    def make(self) -> None:
        """Lay it; what a fleet that was killed has left is laid anew.

        Raises:
            RuntimeError: if this machine does not let us.
        """
        self.remove()
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self.address}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for host in HOSTS:
            name, (outer, inner) = self.namespace(host), self._cable(host)
            _ip("netns", "add", name)
            _ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
            _ip("link", "set", outer, "master", self._bridge, "up")
            _ip("-n", name, "addr", "add", f"{self.of_host(host)}/24", "dev", inner)
            # In a new namespace the loopback device is down as well.
            for device in ("lo", inner):
                _ip("-n", name, "link", "set", device, "up")

    def remove(self) -> None:
        """Take it away, as far as it is there."""
        for host in HOSTS:
            # A process that is left keeps the namespace, and with it the cable's end, alive.
            _ip("link", "del", self._cable(host)[0], check=False)
            _ip("netns", "del", self.namespace(host), check=False)
        _ip("link", "del", self._bridge, check=False)

    def cut(self, host: str) -> None:
        """Pull a host's cable out: nothing arrives, and nobody is told."""
        _ip("link", "set", self._cable(host)[0], "down")

    def mend(self, host: str) -> None:
        """Put it in again."""
        _ip("link", "set", self._cable(host)[0], "up")


def may_be_made() -> bool:
    """Whether this machine lets us make such a network, and run programs in it."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    # Tried, since root in a container may lack the right.
    probe = Network(Path(f"/probe/{os.getpid()}"))
    try:
        probe.make()
        for host in HOSTS:
            _ip("netns", "exec", probe.namespace(host), "true")
    except RuntimeError:
        return False
    finally:
        probe.remove()
    return True


def _ip(*words: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
