// What webhooks told the agent.
import type { Client, Event, Offer } from "./client.js";

/** How often the person is asked again about one offer, at most, so that two machines never talk all night. */
const maxQuestions = 2;

/** An agent with a database keeps this there. */
export class Inbox {
  private readonly texts = new Map<string, string>(); // by the message's id
  private readonly questions = new Map<string, number>(); // that are left, by the operation's id

  constructor(
    private readonly client: Client,
    private readonly say: (line: string) => void,
  ) {}

  /** Says that answers about an operation are this agent's business: an endpoint gets the events of all agents. */
  expect(operation: string): void {
    this.questions.set(operation, maxQuestions);
  }

  /** Takes an event, whose signature was checked. */
  async hear({ id, type, data }: Event): Promise<void> {
    if (type === "message.received" && data.message_id) {
      this.texts.set(data.message_id, data.text ?? "");
    } else if (type === "reply.unresolved" && data.run_id && this.mayAsk(data.offers ?? [])) {
      // The text was neither a sure yes nor a no, and the offer is still open. The question goes out in the message's
      // own run; the server puts the offer's last line below it. The event's id as the key: one event, one question.
      const sent = await this.client.send(id, data.run_id, "I am not sure what you want.");
      this.say(`asked again: operation ${sent.id}`);
    }
  }

  private mayAsk(open: Offer[]): boolean {
    for (const { operation_id: operation } of open) {
      const left = this.questions.get(operation) ?? 0;
      if (left > 0) {
        this.questions.set(operation, left - 1);
        return true;
      }
    }
    return false;
  }

  text(message: string): string | undefined {
    return this.texts.get(message);
  }
}
