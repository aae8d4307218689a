"""Log formats of the controller: lines for people, or one JSON object per line for machines."""

import logging
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from mxnet_operator.api.printable import printable

KEYS: Final = ("job", "uid")
"""Fields of a record besides its message, passed by `extra=`."""

LogFormat = Literal["text", "json"]


class TextFormatter(logging.Formatter):
    """Formatter of text lines: `12:01:33 INFO default/digits: message`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record with control characters escaped: messages quote servers and users."""
        return printable(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        if job := getattr(record, "job", ""):
            record.message = f"{job}: {record.message}"
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """Formatter of one JSON object per record: time (UTC), level, logger, message, job, uid, error."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": printable(record.getMessage()),
            **{key: getattr(record, key) for key in KEYS if getattr(record, key, None)},
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields).decode()


def configure_logging(level: str, log_format: LogFormat) -> None:
    """Log to standard error, in place of whatever was configured before."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
