// A receiver on Node.js, with the official library.
//
//     npm install standardwebhooks
//     CALLBACK_SECRET=whsec_… PORT=8090 node examples/receivers/receiver.mjs

import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.CALLBACK_SECRET);
const handled = new Set(); // a real receiver keeps these ids in its database

const server = createServer(async (request, response) => {
  const answer = (status, value) => {
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify(value)); // with the status 200, this is the response to the message
  };
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  let payload;
  try {
    payload = webhook.verify(Buffer.concat(chunks), request.headers); // the body as sent, byte for byte
  } catch {
    return answer(401, { error: "the signature is not valid" });
  }
  const id = request.headers["webhook-id"];
  if (!handled.has(id)) {
    console.log("handled", request.headers["duequeue-key"], JSON.stringify(payload));
    handled.add(id);
  }
  answer(200, { handled: id });
});

server.listen(process.env.PORT ?? 8090, "127.0.0.1", () => {
  console.log(`listening on port ${server.address().port}`);
});
