# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces connected by a link of limited rate, shared by a trial's ranks and disturbers."""

import itertools
import os
import subprocess

RATE_MBIT = 200


def ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True)


class Link:
    """A veth pair between two namespaces of its own, each end shaped to a rate (None: not shaped); close() removes it. Needs
    root."""

    def __init__(self, name, rate_mbit=RATE_MBIT):
        self.names = [f"bench-{os.getpid()}-{name}-{end}" for end in "ab"]
        self.addresses = ["10.77.0.1", "10.77.0.2"]
        self.rate_mbit = rate_mbit
        self.pids = []
        self.handles = itertools.count(1)
        try:
            for namespace in self.names:
                ip("netns", "add", namespace)
            ip("link", "add", "veth0", "netns", self.names[0], "type", "veth", "peer", "name", "veth0", "netns",
               self.names[1])
            for namespace, address in zip(self.names, self.addresses):
                ip("-n", namespace, "address", "add", f"{address}/24", "dev", "veth0")
                ip("-n", namespace, "link", "set", "veth0", "up")
                ip("-n", namespace, "link", "set", "lo", "up")
            for end in (0, 1) if rate_mbit else ():
                self.shape(end)
        except (OSError, subprocess.CalledProcessError):
            self.close()
            raise

    def tc(self, end, *arguments):
        subprocess.run(["tc", "-n", self.names[end], *map(str, arguments)], check=True, capture_output=True)

    def shape(self, end, limit_kb=2048):
        """Sets the rate of one end, and the length of its queue, beyond which packets are dropped.

        A new handle creates a new queue. A changed queue would keep its packets, and a packet larger than the new burst would
        block all others forever.
        """
        burst_kb = 128 if limit_kb >= 128 else 16  # a burst larger than the queue would stop all traffic
        self.tc(end, "qdisc", "replace", "dev", "veth0", "root", "handle", f"{next(self.handles)}:", "tbf", "rate",
                f"{self.rate_mbit}mbit", "burst", f"{burst_kb}kb", "limit", f"{limit_kb}kb")

    def command(self, end, command):
        """`command`, wrapped so that it starts in the namespace of that end."""
        return ["ip", "netns", "exec", self.names[end], *map(str, command)]

    def retransmits(self):
        """Total of retransmitted segments in both namespaces."""
        total = 0
        for namespace in self.names:
            done = subprocess.run(["ip", "netns", "exec", namespace, "cat", "/proc/net/snmp"], capture_output=True,
                                  text=True, check=True)
            names, values = (line.split() for line in done.stdout.splitlines() if line.startswith("Tcp:"))
            total += int(values[names.index("RetransSegs")])
        return total

    def close(self):
        for namespace in self.names:
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)
