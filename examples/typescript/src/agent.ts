// A worked agent. It puts one action to a person, waits for the answer, and does exactly what was approved, once, also
// when it is killed at any point and started again. README.md says how to run it.
import { open, readFile } from "node:fs/promises";
import { type Args, argsSha256, Client, Problem } from "./client.js";
import { Inbox } from "./inbox.js";
import { listen } from "./webhook.js";

/**
 * What the agent has made up its mind to do. Its id must stay the same from one start to the next: the Idempotency-Keys
 * are made of it, so that a second start finds the offer of the first.
 */
interface Task {
  id: string;
  tool: string;
  args: Args;
}

/** Logs ids, states and codes. Arguments, texts, addresses and keys stay out. */
const say = (line: string) => console.log(line);

async function main(file: string | undefined): Promise<number> {
  const { COUNTERSIGN_URL, COUNTERSIGN_KEY, COUNTERSIGN_PERSON, COUNTERSIGN_WEBHOOK_SECRET } = process.env;
  if (!file || !COUNTERSIGN_KEY || !COUNTERSIGN_PERSON) {
    console.error("usage: node dist/agent.js TASK.json, with COUNTERSIGN_KEY and COUNTERSIGN_PERSON set");
    return 2;
  }
  const task = JSON.parse(await readFile(file, "utf8")) as Task;
  const client = new Client(COUNTERSIGN_URL ?? "http://127.0.0.1:8080", COUNTERSIGN_KEY);
  const inbox = new Inbox(client, say);
  const stop = COUNTERSIGN_WEBHOOK_SECRET
    ? await listen(process.env.COUNTERSIGN_WEBHOOK_ADDR ?? "127.0.0.1:8090", COUNTERSIGN_WEBHOOK_SECRET, (event) => inbox.hear(event), say)
    : () => {};
  const agent = new Agent(client, COUNTERSIGN_PERSON, new Outbox(process.env.AGENT_OUTBOX ?? "outbox.jsonl"), inbox);
  try {
    return (await agent.work(task)) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // 422 is the gate, or the arguments: trying again changes nothing, and there is no way around it.
    say(`refused: ${error.code}: ${error.detail}`);
    return 1;
  } finally {
    stop();
  }
}

class Agent {
  constructor(
    private readonly client: Client,
    private readonly person: string,
    private readonly outbox: Outbox,
    private readonly inbox: Inbox,
  ) {}

  /**
   * Proposes, waits, and goes by the answer; true if the action succeeded. A person who changes something gets a new
   * offer that replaces the old one.
   */
  async work(task: Task): Promise<boolean> {
    let args = task.args;
    let supersedes: string | undefined;
    for (let revision = 1; ; revision++) {
      const offer = await this.client.propose(`${task.id}-${revision}`, {
        address: this.person,
        tool: task.tool,
        args,
        supersedes,
      });
      this.inbox.expect(offer.operation_id);
      say(`asked: operation ${offer.operation_id}`);
      const operation = await this.client.wait(offer.operation_id);
      say(`answer: ${operation.state}`);
      switch (operation.state) {
        case "approved":
        case "running":
        case "succeeded":
        case "failed":
          return this.carryOut(operation.id, args);
        case "modified": {
          const message = operation.offer?.closed_by?.message_id ?? "";
          // As a webhook brought it, or else from the feed, which has everything.
          const text = this.inbox.text(message) ?? (await this.client.text(message));
          const revised = revise(args, text);
          if (!revised) {
            say("the change was not understood; nothing was done");
            return false;
          }
          args = revised;
          supersedes = operation.offer?.id;
          break;
        }
        default: // declined, expired, withdrawn, superseded, undeliverable, lapsed: no yes, so nothing is done
          return false;
      }
    }
  }

  /** Begins, acts and reports. Only the first begin of an operation succeeds, whoever calls it. */
  private async carryOut(operation: string, args: Args): Promise<boolean> {
    let status: "succeeded" | "failed" = "succeeded";
    let released: Args | undefined;
    try {
      released = await this.client.begin(operation, argsSha256(args));
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "already_begun") throw error;
      if (error.result) {
        say(`closed before: ${error.result.status}`);
        return error.result.status === "succeeded";
      }
      // An earlier start of this agent died between begin and result. Whether it had acted is for its own outbox to
      // say; if that does not know, the action is reported as failed. It is never done a second time on a guess.
      if (!(await this.outbox.has(operation))) status = "failed";
      say(`begun before: operation ${operation}`);
    }
    if (released) {
      try {
        await this.outbox.send(operation, released);
        say(`acted: operation ${operation}`);
      } catch {
        status = "failed";
      }
    }
    await this.client.result(operation, status);
    say(`result: ${status}`);
    return status === "succeeded";
  }
}

const contacts = new Map([
  ["dana", "dana@example.com"],
  ["sam", "sam@example.com"],
]);

/**
 * Works a change into the arguments; undefined if it is not understood. This is where a real agent asks its model. The
 * person sees what came of it and has the last word again, so that a misunderstanding costs a text and nothing else.
 */
function revise(args: Args, text: string): Args | undefined {
  const name = /\bcc\s+([a-z]+)/i.exec(text)?.[1]?.toLowerCase();
  const address = name && contacts.get(name);
  return address ? { ...args, cc: [address] } : undefined;
}

/** Stands for the outside world: the action is a line in a file. */
class Outbox {
  constructor(private readonly path: string) {}

  /** Writes the line with the operation's id, which a mail service would take as its own idempotency key. */
  async send(operation: string, args: Args): Promise<void> {
    const file = await open(this.path, "a", 0o600);
    try {
      await file.write(`${JSON.stringify({ operation, args })}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  async has(operation: string): Promise<boolean> {
    try {
      return (await readFile(this.path, "utf8")).split("\n").some((line) => line.startsWith(`{"operation":"${operation}"`));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
      throw error;
    }
  }
}

process.exitCode = await main(process.argv[2]).catch((error: Error) => {
  console.error(error.message);
  return 1;
});
