"""What every store and both faces promise, sentence by sentence of docs/protocol.md."""
