"""Text from elsewhere, made fit for a log line or the reason of a burial."""

LONGEST = 300


def plain(text: str, longest: int = LONGEST) -> str:
    """Return a text in one line, without control characters, and not too long."""
    line = " ".join("".join(_shown(character) for character in text[: 4 * longest]).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
