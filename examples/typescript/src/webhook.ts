// Signed events, verified by the npm package of the Standard Webhooks scheme.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import type { Event } from "./client.js";

const maxBody = 1 << 20;

/**
 * Serves the endpoint; the function that it resolves to ends that. Each event goes to hear; when that rejects, the event
 * comes again.
 */
export async function listen(
  address: string,
  secret: string,
  hear: (event: Event) => Promise<void>,
  say: (line: string) => void,
): Promise<() => void> {
  // verify checks the signature over the very bytes of the body, and that the delivery is at most five minutes old. It
  // would take a short secret: one that is empty or guessed signs what anybody can sign.
  if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) {
    throw new Error("COUNTERSIGN_WEBHOOK_SECRET must be the whsec_… that bot endpoints add printed");
  }
  const webhook = new Webhook(secret);
  const heard = new Set<string>(); // by the event's id; an agent with a database keeps it there

  // Nothing of a body is looked at before its signature has been checked, and 204 is said only when the event has been
  // taken: anything else brings it again.
  const status = async (request: IncomingMessage): Promise<number> => {
    const body = await read(request);
    if (request.method !== "POST" || body === undefined) return 400;
    let event: Event;
    try {
      event = webhook.verify(body, request.headers as Record<string, string>) as Event;
    } catch (error) {
      say(`delivery refused: ${(error as Error).message}`);
      return 401;
    }
    if (!heard.has(event.id)) {
      await hear(event);
      heard.add(event.id);
      say(`event ${event.seq}: ${event.type}`);
    }
    return 204;
  };
  const server = createServer((request, response) => {
    status(request)
      .catch(() => 503)
      .then((code) => response.writeHead(code).end());
  });
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(Number(address.slice(colon + 1)), host, resolve);
  });
  say(`webhooks: http://${host}:${(server.address() as AddressInfo).port}/`);
  return () => {
    server.close();
    server.closeAllConnections();
  };
}

async function read(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > maxBody) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}
