"""Placeholders for values that a framework fills in when the job is created."""


class Placeholder:
    """Value that a framework fills in later, such as an input parameter of an Argo template.

    It may stand for any value of a description, or for one within a list or mapping; nothing is checked of it here.
    """

    def one_if_any(self) -> "Placeholder":
        """Return 1 where this number of servers is not 0, else 0: the schedulers that they need."""
        raise NotImplementedError

    def none_if_one(self) -> "Placeholder":
        """Return 0 where this number of workers is 1, else the number: the servers that they get by default."""
        raise NotImplementedError
