"""Log records as JSON, one object on each line."""

import json
import logging
from datetime import UTC, datetime

# What every record has; anything else was passed as `extra`.
_OWN = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}


class JsonLines(logging.Formatter):
    """Writes a record with its traceback and its extra fields; the events' fields are flat."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        shown: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        if record.exc_info:
            shown["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            shown["stack"] = self.formatStack(record.stack_info)
        extra = {name: value for name, value in vars(record).items() if name not in _OWN}
        event = extra.pop("duequeue", None)
        for fields in (event if isinstance(event, dict) else {}, extra):
            for name, value in fields.items():
                shown.setdefault(name, value)
        return json.dumps(shown, default=str, skipkeys=True)
