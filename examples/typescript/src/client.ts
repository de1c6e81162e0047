// The agent's side of the HTTP API, with the built-in fetch.
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Args = { [name: string]: Json };

interface ProblemDocument {
  code?: string;
  detail?: string;
  result?: { status: "succeeded" | "failed" };
}

/** A refusal: an RFC 9457 document. code is what to switch on. */
export class Problem extends Error {
  readonly code: string;
  readonly detail: string;
  /** With already_begun: what was reported, if anything was. */
  readonly result: ProblemDocument["result"];

  constructor(
    readonly status: number,
    document: ProblemDocument,
  ) {
    super(`${status} ${document.code}: ${document.detail}`);
    this.code = document.code ?? "";
    this.detail = document.detail ?? "";
    this.result = document.result;
  }
}

export interface Offer {
  id: string;
  operation_id: string;
  closed_by: { message_id?: string } | null;
}

export interface Operation {
  id: string;
  state: string;
  offer: Offer | null;
}

export interface Event {
  id: string;
  type: string;
  /** In webhooks only. */
  seq?: number;
  data: {
    run_id?: string;
    message_id?: string;
    text?: string;
    /** With reply.unresolved: those that are open. */
    offers?: Offer[];
  };
}

export interface Proposal {
  address: string;
  tool: string;
  args: Args;
  supersedes?: string;
}

export class Client {
  constructor(
    private readonly base: string,
    private readonly key: string,
  ) {}

  /** Asks for an offer. The same key with the same body gets the earlier one. */
  propose(idempotencyKey: string, proposal: Proposal): Promise<Offer> {
    return this.call("POST", "/v1/offers", proposal, { "Idempotency-Key": idempotencyKey });
  }

  /** Resolves once the operation is decided. Each call hangs until then, or for half a minute. */
  async wait(id: string): Promise<Operation> {
    for (;;) {
      const operation = await this.call<Operation>("GET", `/v1/operations/${id}?wait=30s`);
      // settling is a yes that the person can still take back.
      if (operation.state !== "asked" && operation.state !== "settling") return operation;
    }
  }

  /** Names what is about to run and gets the exact approved arguments, once. */
  async begin(id: string, sha256: string): Promise<Args> {
    const begun = await this.call<{ args: Args }>("POST", `/v1/operations/${id}/begin`, { args_sha256: sha256 });
    return begun.args;
  }

  /** Closes the operation; the person gets a receipt. */
  async result(id: string, status: "succeeded" | "failed"): Promise<void> {
    await this.call("POST", `/v1/operations/${id}/result`, { status, output: {} });
  }

  /** Texts the person whose message started the run. It needs no yes: it is an answer. */
  send(idempotencyKey: string, run: string, text: string): Promise<Operation> {
    const body = { run_id: run, kind: "outbound_message", tool: "message.send", args: { text } };
    return this.call("POST", "/v1/operations", body, { "Idempotency-Key": idempotencyKey });
  }

  /** Finds a message of the person in the feed. An agent that lives longer keeps next, and reads on from there. */
  async text(message: string): Promise<string> {
    for (let after = ""; ; ) {
      const query = new URLSearchParams({ after, wait: "10s" });
      const page = await this.call<{ events: Event[]; next: string }>("GET", `/v1/events?${query}`);
      const found = page.events.find((e) => e.type === "message.received" && e.data.message_id === message);
      if (found) return found.data.text ?? "";
      if (page.events.length === 0) throw new Error("the feed does not have the message");
      after = page.next;
    }
  }

  /**
   * Makes one call and repeats it when the network or the server fails. That is safe everywhere: an offer by its
   * Idempotency-Key, a begin and a result because a second one is told of the first.
   */
  private async call<T>(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.once<T>(method, path, body, headers);
      } catch (error) {
        const final = error instanceof Problem && error.status < 500 && error.status !== 429;
        if (final || attempt === 5) throw error;
      }
      await pause(200 * 2 ** attempt);
    }
  }

  private async once<T>(method: string, path: string, body: object | undefined, headers: Record<string, string>): Promise<T> {
    const answer = await fetch(this.base + path, {
      method,
      headers: { ...headers, Authorization: `Bearer ${this.key}`, ...(body && { "Content-Type": "application/json" }) },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(90_000), // longer than the longest wait
    });
    // Whatever else answers with an error is a problem without a code.
    if (!answer.ok) throw new Problem(answer.status, (await answer.json().catch(() => ({}))) as ProblemDocument);
    return (await answer.json()) as T;
  }
}

/** The SHA-256 of the arguments' canonical form, in hexadecimal. */
export function argsSha256(args: Args): string {
  return createHash("sha256").update(canonical(args), "utf8").digest("hex");
}

/**
 * JSON as RFC 8785 has it: strings and numbers as JSON.stringify writes them, and names sorted by their UTF-16 code
 * units, as sort() does.
 */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name] as Json)}`);
  return `{${members.join(",")}}`;
}
