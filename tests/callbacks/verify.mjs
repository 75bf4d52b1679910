// Judges callbacks that are given as JSON: with the official library, and with Node's own ed25519.
import { createPublicKey, verify } from "node:crypto";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";

const ED25519 = Buffer.from("302a300506032b6570032100", "hex"); // what precedes a raw key in SPKI

function judged({ secret, headers, body }) {
  if (!secret.startsWith("whpk_")) {
    new Webhook(secret).verify(body, headers, { jsonParse: false });
    return;
  }
  const raw = Buffer.from(secret.slice("whpk_".length), "base64");
  const key = createPublicKey({ key: Buffer.concat([ED25519, raw]), format: "der", type: "spki" });
  const content = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  for (const one of headers["webhook-signature"].split(" ")) {
    const [version, signature] = one.split(",");
    const fits = verify(null, Buffer.from(content), key, Buffer.from(signature, "base64"));
    if (version === "v1a" && fits) return;
  }
  throw new Error("No matching signature found");
}

const verdicts = JSON.parse(await text(process.stdin)).map((call) => {
  try {
    judged(call);
    return "valid";
  } catch (error) {
    return error.message;
  }
});
console.log(JSON.stringify(verdicts));
