"""Gives each pod a loopback address of its own out of the cluster's range."""

ADDRESSES = 254 * 254
"""How many there are."""


class AddressesExhausted(Exception):  # noqa: N818 - the name of a state, as in ipaddress
    """Every address of the range belongs to a pod that still exists."""


class Addresses:
    """The addresses `<subnet>.1.1` to `<subnet>.254.254`; who holds one is known by the pod's uid.

    They are handed out in turn, so that a freed one rests as long as possible: connections of its last holder may
    linger in TIME_WAIT.
    """

    def __init__(self, subnet: str) -> None:
        self._subnet = subnet
        self._holders: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        self._next = 0

    def take(self, uid: str) -> str:
        """The address of this pod, the same one for every call until `free`.

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
        """Note the address that a pod has already, from the life of an earlier kubelet."""
        self._holders[uid] = address
        self._taken[address] = uid

    def free(self, uid: str) -> None:
        """Take back the address of a pod that no longer exists."""
        address = self._holders.pop(uid, None)
        if address is not None and self._taken.get(address) == uid:
            del self._taken[address]
