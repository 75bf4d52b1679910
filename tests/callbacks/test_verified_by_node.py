"""The official library for JavaScript, and Node's own ed25519, accept our signatures."""

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from duequeue.callbacks.signing import new_secret, parse_secret, public_key, signature
from tests.fixtures.node import node, node_packages

SCRIPT = Path(__file__).with_name("verify.mjs")
MANIFEST = Path(__file__).parents[2] / "examples" / "receivers" / "package.json"


def judged(calls: list[dict[str, object]], folder: Path) -> list[str]:
    """Return what Node.js says of each call."""
    shutil.copy(SCRIPT, folder)
    (folder / "node_modules").symlink_to(node_packages(MANIFEST))
    ended = subprocess.run(
        [node(), folder / SCRIPT.name],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    verdicts: list[str] = json.loads(ended.stdout)
    return verdicts


def test_node_accepts_both_kinds_of_signatures(tmp_path: Path) -> None:
    shared, key, stranger = new_secret(), new_secret("v1a"), new_secret()
    public = public_key(parse_secret(key))
    timestamp = int(datetime.now(UTC).timestamp())
    calls: list[dict[str, object]] = []
    for body in ("{}", '{"price":"5 €"}', "", "line\r\nline"):
        value = signature(
            [parse_secret(key), parse_secret(shared)], "msg_1", timestamp, body.encode()
        )
        headers = {
            "webhook-id": "msg_1",
            "webhook-timestamp": str(timestamp),
            "webhook-signature": value,
        }
        cases = [(shared, body), (public, body), (stranger, body)]
        cases += [(shared, body + " "), (public, body + " ")]
        calls += [{"secret": secret, "headers": headers, "body": sent} for secret, sent in cases]
    wrong = "No matching signature found"
    assert judged(calls, tmp_path) == ["valid", "valid", wrong, wrong, wrong] * 4
