"""Loopback addresses of pods, from the cluster's subnet."""

ADDRESSES = 254 * 254
"""Number of addresses in a subnet."""


class AddressesExhausted(Exception):  # noqa: N818 - the name of a state, as in ipaddress
    """Every address of the subnet is held by a pod that still exists."""


class Addresses:
    """Pool of the addresses `<subnet>.1.1` to `<subnet>.254.254`, held by pods' uids.

    They are handed out in turn, so that a freed one rests as long as possible: connections of its last holder may
    linger in TIME_WAIT.
    """

    def __init__(self, subnet: str) -> None:
        self._subnet = subnet
        self._holders: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        self._next = 0

    def take(self, uid: str) -> str:
        """Take an address for this pod, the same one for every call until `free`.

        Raises:
            AddressesExhausted: there is none left.
        """
        if uid in self._holders:
            return self._holders[uid]
        for _ in range(ADDRESSES):
            address = f"{self._subnet}.{self._next // 254 + 1}.{self._next % 254 + 1}"
            self._next = (self._next + 1) % ADDRESSES
            if address not in self._taken:
                self.hold(uid, address)
                return address
        raise AddressesExhausted(f"all addresses of {self._subnet}.0.0/16 are in use")

    def hold(self, uid: str, address: str) -> None:
        """Record the address that a pod has from an earlier run of the kubelet."""
        self._holders[uid] = address
        self._taken[address] = uid

    def free(self, uid: str) -> None:
        """Release the address of a pod that no longer exists."""
        address = self._holders.pop(uid, None)
        if address is not None and self._taken.get(address) == uid:
            del self._taken[address]
