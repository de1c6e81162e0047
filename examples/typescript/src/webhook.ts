// Signed events, verified by the npm package of the Standard Webhooks scheme.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import type { Event } from "./client.js";

const maxBody = 1 << 20;

/** Keeps what webhooks brought. An agent with a database keeps it there. */
export class Inbox {
  private readonly seen = new Set<string>(); // by the event's id
  private readonly texts = new Map<string, string>(); // by the message's id

  constructor(private readonly say: (line: string) => void) {}

  /** Notes an event, once however often it is delivered. */
  take(event: Event): void {
    if (this.seen.has(event.id)) return;
    this.seen.add(event.id);
    const { message_id: message, text } = event.data;
    if (event.type === "message.received" && message && text) this.texts.set(message, text);
    this.say(`event ${event.seq}: ${event.type}`);
  }

  text(message: string): string | undefined {
    return this.texts.get(message);
  }
}

/** Serves the endpoint; the function that it resolves to ends that. */
export async function listen(address: string, secret: string, inbox: Inbox, say: (line: string) => void): Promise<() => void> {
  // verify checks the signature over the very bytes of the body, and that the delivery is at most five minutes old. It
  // would take a short secret: one that is empty or guessed signs what anybody can sign.
  if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) {
    throw new Error("COUNTERSIGN_WEBHOOK_SECRET must be the whsec_… that bot endpoints add printed");
  }
  const webhook = new Webhook(secret);

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
    inbox.take(event);
    return 204;
  };
  const server = createServer((request, response) => {
    status(request)
      .catch(() => 500)
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
